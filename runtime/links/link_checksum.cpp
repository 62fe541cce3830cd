#include "runtime/links/link_checksum.hpp"

#include "runtime/invariants/ensure.hpp"

#define XXH_INLINE_ALL // no library to link, and vectors of the host's compiler flags
#include <xxhash.h>

namespace ringmaster {

uint64_t link_checksum(std::span<const std::byte> bytes) {
  ensure(bytes.empty() || bytes.data() != nullptr, "a checksum is of bytes in memory");
  return XXH3_64bits(bytes.data(), bytes.size());
}

} // namespace ringmaster
