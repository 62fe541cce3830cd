#include "runtime/bulk_copy.hpp"

#include "runtime/announced_access.hpp"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace ringmaster {

bool writes_past_caches(uint64_t touched_bytes) {
  constexpr uint64_t enough = 24u << 20; // three quarters of the L3 that a core sees on common servers
  return touched_bytes >= enough;
}

void copy_bytes(std::byte* out, const std::byte* in, uint64_t bytes, uint64_t touched_bytes) {
  if (bytes == 0 || out == in)
    return;
  announce_read(in, bytes);
  announce_write(out, bytes);
  if (writes_past_caches(std::max(touched_bytes, 2 * bytes))) {
    stream_bytes(out, in, bytes);
    finish_streaming();
  } else {
    std::memcpy(out, in, bytes);
  }
}

#ifdef __SSE2__

void stream_bytes(std::byte* out, const std::byte* in, uint64_t bytes) {
  constexpr uint64_t ahead = 1024; // bytes; the processor's own prefetching stops at each page
  const uint64_t to_line = -reinterpret_cast<uintptr_t>(out) % cache_line_bytes;
  const uint64_t head = std::min(to_line, bytes);
  std::memcpy(out, in, head);
  uint64_t done = head;
  for (; bytes - done >= cache_line_bytes; done += cache_line_bytes) {
    const auto from = reinterpret_cast<const __m128i*>(in + done);
    const auto to = reinterpret_cast<__m128i*>(out + done);
    _mm_prefetch(reinterpret_cast<const char*>(in + std::min(done + ahead, bytes - 1)), _MM_HINT_T0);
    const auto a = _mm_loadu_si128(from);
    const auto b = _mm_loadu_si128(from + 1);
    const auto c = _mm_loadu_si128(from + 2);
    const auto d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(out + done, in + done, bytes - done);
}

void finish_streaming() {
  _mm_sfence();
}

#else

void stream_bytes(std::byte* out, const std::byte* in, uint64_t bytes) {
  std::memcpy(out, in, bytes);
}

void finish_streaming() {}

#endif

} // namespace ringmaster
