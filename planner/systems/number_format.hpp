#pragma once

#include <cstdint>
#include <string_view>

namespace ringmaster::training {

/// What products are computed in. Weights are updated from copies in float32, what else is kept and sent is bf16, but
/// where number_format_bytes says otherwise; attention's scores are bf16's.
enum class number_format : uint8_t {
  bf16,
  fp8,   ///< E4M3 and E5M2 with a scale a tensor (Micikevicius et al. 2022).
  mxfp8, ///< With a scale a block of 32 (OCP microscaling formats 2023).
  nvfp4, ///< E2M1 with a scale a block of 16 and one a tensor (NVIDIA 2025).
};

std::string_view name_of(number_format x);

constexpr double bf16_bytes = 2;

/// Bytes an element, with its share of the scales.
struct number_format_bytes {
  double weight;   ///< Of the copies that products read, in both directions.
  double kept;     ///< Of a product's input that waits for the backward.
  double gathered; ///< Of a weight that is gathered.
  double cast;     ///< Memory traffic of an element that is brought into the precision, for one product.
};
number_format_bytes bytes_of(number_format x);

} // namespace ringmaster::training
