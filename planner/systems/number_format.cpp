#include "planner/systems/number_format.hpp"

#include <array>

namespace ringmaster::training {

std::string_view name_of(number_format x) {
  static constexpr std::array<std::string_view, 4> names{"bf16", "fp8", "mxfp8", "nvfp4"};
  return names[static_cast<size_t>(x)];
}

number_format_bytes bytes_of(number_format x) {
  // mxfp8's and nvfp4's blocks lie along the sum, so rows and columns are two copies; those of fp8 are one, turned
  // around when it is needed.
  switch (x) {
    case number_format::fp8: return {.weight = 2, .kept = 1, .gathered = 1, .cast = 4};
    case number_format::mxfp8: return {.weight = 2 * 33.0 / 32, .kept = 33.0 / 32, .gathered = 2, .cast = 4 + 1.0 / 16};
    case number_format::nvfp4: return {.weight = 2 * 9.0 / 16, .kept = 9.0 / 16, .gathered = 2, .cast = 5};
    default: return {.weight = 2, .kept = 2, .gathered = 2, .cast = 0};
  }
}

} // namespace ringmaster::training
