#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <utility>

namespace ringmaster::training {

/// The numbers of CPython's random.Random for a seed that is a whole number, so that an order of samples can be made
/// again by a script: MT19937 (Matsumoto and Nishimura 1998), seeded by init_by_array with the seed's 32-bit words.
class python_random {
public:
  /// random.Random(seed + (high << 64)).
  explicit python_random(uint64_t seed, uint64_t high = 0);

  /// getrandbits(count), 1 to 64.
  uint64_t bits(uint32_t count);
  /// randrange(limit), limit > 0: as many bits as the limit has, until they are below it.
  uint64_t below(uint64_t limit);
  /// shuffle(list): from the last place down, each with one that is not behind it (Fisher and Yates). `watch`: told now
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
