#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster::training {

/// A seed of CPython's random.Random that is a whole number of any size. The sign does not count: random.Random(-5) is
/// random.Random(5).
class python_seed {
public:
  static constexpr size_t digits_max = 4300; ///< The limit of CPython's int().

  explicit python_seed(uint64_t seed = 0, uint64_t high = 0); ///< seed + (high << 64)
  /// "-7", "+7", "0x1f", "340282366920938463463374607431768211456". Errors: invalid_argument.
  static caf::expected<python_seed> parse(std::string_view text);

  /// Its size in words of 32 bits, the lowest first: the words that it has, and one for 0.
  std::span<const uint32_t> words() const { return words_; }
  /// In decimal, with its sign.
  const std::string& text() const { return text_; }

private:
  std::vector<uint32_t> words_;
  std::string text_;
};

/// The numbers of CPython's random.Random for a seed that is a whole number, so that an order of samples can be made
/// again by a script: MT19937 (Matsumoto and Nishimura 1998), seeded by init_by_array with the seed's 32-bit words.
class python_random {
public:
  /// random.Random(seed + (high << 64)).
  explicit python_random(uint64_t seed, uint64_t high = 0) : python_random(python_seed{seed, high}) {}
  explicit python_random(const python_seed& seed);

  /// getrandbits(count), 1 to 64.
  uint64_t bits(uint32_t count);
  /// randrange(limit), limit > 0: as many bits as the limit has, until they are below it.
  uint64_t below(uint64_t limit);
  /// shuffle(list): from the last place down, each with one at or before it (Fisher and Yates). `watch`: told now
  /// and then which part is done.
  template <class T>
  void shuffle(std::span<T> list, const std::function<void(double part)>& watch = {}) {
    for (size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[below(i)]);
      if (watch && i % (1 << 20) == 0)
        watch(1 - static_cast<double>(i) / static_cast<double>(list.size()));
    }
  }

private:
  std::mt19937 words_;
};

} // namespace ringmaster::training
