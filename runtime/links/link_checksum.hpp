#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringmaster {

/// XXH3, 64 bits: the checksum of frames on bulk connections, and the digest of stored tensors and data sets. It
/// detects damage, not forgery.
uint64_t link_checksum(std::span<const std::byte> bytes);

} // namespace ringmaster
