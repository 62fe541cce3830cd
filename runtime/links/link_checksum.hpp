#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringmaster {

/// Of a frame's bytes: 64 bits in which every bit of the input counts, and its place. Tells damage, not malice. Faster
/// than memory is read, so that it is not seen beside a copy.
uint64_t link_checksum(std::span<const std::byte> bytes);

} // namespace ringmaster
