#pragma once

#include <cstdint>

// The numbers from which the data of benchmarks, demos and tests are made. This header includes nothing of the project,
// so that the programs in bench/peers/ can use it; bench/peers/gloo_bench.py computes the same.

namespace ringmaster {

/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014: the output function of SplitMix64.
constexpr uint64_t mixed_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The start of `rank`'s sequence. Operations with different salts have different data.
constexpr uint64_t sample_seed(uint64_t rank, uint64_t salt = 0) {
  return mixed_bits(mixed_bits(salt + 1) + rank);
}

/// Element `index` of the sequence: 64 bits that no other element or rank has.
constexpr uint64_t sample_hash(uint64_t seed, uint64_t index) {
  return mixed_bits(seed + index * 0x9e3779b97f4a7c15);
}

/// A whole number from -most to most, each equally likely. `most` < 2^31.
constexpr int64_t sample_whole_number(uint64_t hash, uint64_t most) {
  return static_cast<int64_t>(((hash >> 32) * (2 * most + 1)) >> 32) - static_cast<int64_t>(most);
}

} // namespace ringmaster
