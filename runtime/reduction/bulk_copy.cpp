#include "runtime/reduction/bulk_copy.hpp"

#include "runtime/reduction/announced_access.hpp"
#include "runtime/reduction/instruction_set.hpp"

#include <algorithm>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ringmaster {

bool writes_past_caches(uint64_t touched_bytes) {
  constexpr uint64_t enough = 24u << 20; // three quarters of the L3 that a core sees on common servers
  return touched_bytes >= enough;
}

void copy_bytes(std::byte* out, const std::byte* in, uint64_t bytes, uint64_t touched_bytes) {
  copy_piece(out, in, bytes, touched_bytes);
  finish_streaming();
}

void copy_piece(std::byte* out, const std::byte* in, uint64_t bytes, uint64_t touched_bytes) {
  if (bytes == 0 || out == in)
    return;
  announce_read(in, bytes);
  announce_write(out, bytes);
  if (writes_past_caches(std::max(touched_bytes, 2 * bytes)))
    stream_bytes(out, in, bytes);
  else
    std::memcpy(out, in, bytes);
}

#ifdef __x86_64__

namespace {

// Whole lines of the caches to where one begins.
using line_kernel = void (*)(std::byte* out, const std::byte* in, uint64_t lines);

void stream_lines_baseline(std::byte* out, const std::byte* in, uint64_t lines) {
  auto to = reinterpret_cast<__m128i*>(out);
  auto from = reinterpret_cast<const __m128i*>(in);
  for (; lines > 0; --lines, to += 4, from += 4) {
    _mm_stream_si128(to, _mm_loadu_si128(from));
    _mm_stream_si128(to + 1, _mm_loadu_si128(from + 1));
    _mm_stream_si128(to + 2, _mm_loadu_si128(from + 2));
    _mm_stream_si128(to + 3, _mm_loadu_si128(from + 3));
  }
}

/// A store of a line as a whole is gone at once; parts of it are collected first.
[[gnu::target("avx512f")]] void stream_lines_avx512(std::byte* out, const std::byte* in, uint64_t lines) {
  auto to = reinterpret_cast<__m512i*>(out);
  auto from = reinterpret_cast<const __m512i*>(in);
  for (; lines > 0; --lines)
    _mm512_stream_si512(to++, _mm512_loadu_si512(from++));
}

} // namespace

void stream_bytes(std::byte* out, const std::byte* in, uint64_t bytes) {
  static const line_kernel stream_lines = best_instruction_set() == instruction_set::avx512 ? stream_lines_avx512
                                                                                            : stream_lines_baseline;
  const uint64_t to_line = -reinterpret_cast<uintptr_t>(out) % cache_line_bytes;
  const uint64_t head = std::min(to_line, bytes);
  const uint64_t body = (bytes - head) / cache_line_bytes * cache_line_bytes;
  if (head > 0)
    std::memcpy(out, in, head);
  stream_lines(out + head, in + head, body / cache_line_bytes);
  if (head + body < bytes)
    std::memcpy(out + head + body, in + head + body, bytes - head - body);
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
