#include "runtime/training/data/python_random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace ringmaster::training {

namespace {

/// What std::mt19937 asks for the words that it begins with: init_by_array of the authors' program, mt19937ar.c.
class array_seed {
public:
  using result_type = uint32_t;

  explicit array_seed(std::span<const uint32_t> key) : key_(key) {}

  template <class Iterator>
  void generate(Iterator first, Iterator last) const {
    const auto count = static_cast<size_t>(last - first);
    first[0] = 19650218;
    for (uint32_t i = 1; i < count; ++i)
      first[i] = 1812433253u * (first[i - 1] ^ first[i - 1] >> 30) + i;
    size_t i = 1, j = 0;
    auto advance = [&] {
      if (++i == count) {
        first[0] = first[count - 1];
        i = 1;
      }
    };
    for (auto k = std::max(count, key_.size()); k > 0; --k) {
      const auto word = key_[j] + static_cast<uint32_t>(j);
      first[i] = (first[i] ^ (first[i - 1] ^ first[i - 1] >> 30) * 1664525u) + word;
      j = j + 1 == key_.size() ? 0 : j + 1;
      advance();
    }
    for (auto k = count - 1; k > 0; --k) {
      first[i] = (first[i] ^ (first[i - 1] ^ first[i - 1] >> 30) * 1566083941u) - static_cast<uint32_t>(i);
      advance();
    }
    first[0] = 0x80000000;
  }

private:
  std::span<const uint32_t> key_;
};

std::mt19937 seeded(uint64_t low, uint64_t high) {
  const std::array<uint32_t, 4> words{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                                      static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  size_t used = words.size();
  while (used > 1 && words[used - 1] == 0) // CPython takes as many as the number has, and one for 0
    --used;
  array_seed seed{std::span{words}.first(used)};
  return std::mt19937{seed};
}

} // namespace

python_random::python_random(uint64_t seed, uint64_t high) : words_(seeded(seed, high)) {}

uint64_t python_random::bits(uint32_t count) {
  auto top = [this](uint32_t wanted) { return uint64_t{static_cast<uint32_t>(words_())} >> (32 - wanted); };
  if (count <= 32)
    return top(count);
  const auto low = top(32);
  return low | top(count - 32) << 32;
}

uint64_t python_random::below(uint64_t limit) {
  const auto width = static_cast<uint32_t>(std::bit_width(limit));
  auto result = bits(width);
  while (result >= limit)
    result = bits(width);
  return result;
}

} // namespace ringmaster::training
