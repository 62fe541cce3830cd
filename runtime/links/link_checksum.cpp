#include "runtime/links/link_checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace ringmaster {

namespace {

constexpr uint64_t odd_1 = 0x9e3779b97f4a7c15, odd_2 = 0xd6e8feb86659fd93; // bits without a pattern

uint64_t stirred(uint64_t state, uint64_t word) {
  return std::rotl(state + word * odd_2, 29) * odd_1;
}

uint64_t word_at(const std::byte* at) {
  uint64_t result;
  std::memcpy(&result, at, sizeof result);
  if constexpr (std::endian::native == std::endian::big)
    result = __builtin_bswap64(result);
  return result;
}

} // namespace

uint64_t link_checksum(std::span<const std::byte> bytes) {
  constexpr size_t word = sizeof(uint64_t);
  std::array<uint64_t, 4> lanes{odd_1, odd_2, ~odd_1, ~odd_2}; // apart, for a processor multiplies several at once
  size_t at = 0;
  for (; bytes.size() - at >= lanes.size() * word; at += lanes.size() * word)
    for (size_t i = 0; i < lanes.size(); ++i)
      lanes[i] = stirred(lanes[i], word_at(bytes.data() + at + i * word));
  auto result = stirred(odd_1, bytes.size());
  for (auto lane : lanes)
    result = stirred(result, lane);
  for (; bytes.size() - at >= word; at += word)
    result = stirred(result, word_at(bytes.data() + at));
  for (; at < bytes.size(); ++at)
    result = stirred(result, std::to_integer<uint64_t>(bytes[at]) + 1);
  result ^= result >> 32;
  result *= odd_2;
  return result ^ (result >> 29);
}

} // namespace ringmaster
