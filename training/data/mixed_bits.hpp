#pragma once

#include <cstdint>

namespace ringmaster::training {

/// 64 bits of which each depends on all of `x`: the last step of SplitMix64 (Steele, Lea and Flood 2014).
inline uint64_t mixed_bits(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// SplitMix64 itself: cheap to begin, so that each sample has one of its own.
class split_mix {
public:
  explicit split_mix(uint64_t seed) : state_(seed) {}

  uint64_t next() { return mixed_bits(state_ += 0x9e3779b97f4a7c15); }
  /// From 0 to 1, without 1.
  double part() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * part(); }

private:
  uint64_t state_;
};

} // namespace ringmaster::training
