#pragma once

#include <cstdint>
#include <random>

namespace ringmaster {

/// A number that no other process draws; not 0.
inline uint64_t random_id() {
  std::random_device chance;
  return std::uniform_int_distribution<uint64_t>{1}(chance);
}

} // namespace ringmaster
