#pragma once

#include <cstddef>
#include <cstdint>

namespace ringmaster {

/// Whether an operation that reads and writes this number of bytes in all is faster when it writes past the caches,
/// with non-temporal stores: the result would not stay there anyway, and a line written as a whole is not fetched
/// first. Measured on Zen 4 with 32 MiB of L3: copies of 64 MiB take 0.6 of memcpy's time, of 4 MiB 1.8 times as long.
/// glibc decides alike, but from a cache size that is wrong by a factor of 10 in some virtual machines.
bool writes_past_caches(uint64_t touched_bytes);

/// memcpy that chooses. The ranges may be the same, but not overlap otherwise. `touched_bytes`: what the operation that
/// this copy is a part of reads and writes, if that is more than the copy does.
void copy_bytes(std::byte* out, const std::byte* in, uint64_t bytes, uint64_t touched_bytes = 0);

/// The same for one of many pieces: ordered with other stores by `finish_streaming` only, which waits for the memory.
/// Once for all pieces, it makes copies of 16 MiB to eight places 1.4 times as fast as once for each 16 KiB.
void copy_piece(std::byte* out, const std::byte* in, uint64_t bytes, uint64_t touched_bytes);

/// Copies with non-temporal stores, where the processor has them and whole lines of the caches are written. They are
/// ordered with other stores by `finish_streaming` only.
void stream_bytes(std::byte* out, const std::byte* in, uint64_t bytes);
void finish_streaming();

/// Bytes of a line of the caches.
constexpr size_t cache_line_bytes = 64;

} // namespace ringmaster
