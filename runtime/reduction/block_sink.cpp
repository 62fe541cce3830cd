#include "runtime/reduction/block_sink.hpp"

#include "runtime/reduction/reduction.hpp"

#include <cstring>

namespace ringmaster {

void block_sink::put(uint64_t offset, std::span<const std::byte> bytes) const {
  if (factor != 1)
    return scale(datatype, factor, bytes.data(), out + offset, bytes.size() / size_of(datatype));
  if (bytes.empty() || (operand == nullptr && out + offset == bytes.data()))
    return; // a block that is in its place already
  if (operand == nullptr)
    std::memcpy(out + offset, bytes.data(), bytes.size());
  else
    (*combine)(bytes.data(), operand + offset, out + offset, bytes.size() / size_of(combine->datatype()));
}

} // namespace ringmaster
