#include "runtime/training/transformer/gpt.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringmaster::training {

std::span<const gpt> known_gpts() {
  static const std::array all{// Radford et al. 2019
                              gpt{"gpt2-117m", 768, 12, 12, 1024}, gpt{"gpt2-1.5b", 1600, 25, 48, 1024},
                              // Brown et al. 2020
                              gpt{"gpt3-1.3b", 2048, 16, 24}, gpt{"gpt3-6.7b", 4096, 32, 32},
                              gpt{"gpt3-13b", 5120, 40, 40}, gpt{"gpt3-175b", 12288, 96, 96},
                              // Korthikanti et al. 2022, table 3
                              gpt{"megatron-22b", 6144, 64, 48}, gpt{"megatron-530b", 20480, 128, 105},
                              gpt{"megatron-1t", 25600, 160, 128}};
  return all;
}

caf::expected<gpt> gpt_of(std::string_view name) {
  std::string names;
  for (auto& x : known_gpts()) {
    if (x.name == name)
      return x;
    names += (names.empty() ? "" : ", ") + x.name;
  }
  return make_error(errc::invalid_argument, fmt::format("there is no model \"{}\"; there are: {}", name, names));
}

double parameters_of(const gpt& x) {
  const double h = x.hidden, layers = x.layers;
  return layers * (12 * h * h + 13 * h) + (double{1} * x.vocabulary + x.sequence) * h;
}

double layer_parameters(const gpt& x, uint32_t layer) {
  const double h = x.hidden;
  return 12 * h * h + (layer == 0 ? h * x.vocabulary : 0);
}

double flops_of(const gpt& x, double global_batch) {
  const double h = x.hidden, s = x.sequence, layers = x.layers;
  return 72 * global_batch * s * layers * h * h * (1 + s / (6 * h) + x.vocabulary / (12 * h * layers));
}

std::string_view name_of(recomputation x) {
  return x == recomputation::none ? "none" : x == recomputation::selective ? "selective" : "full";
}

double activation_bytes(const gpt& x, double samples, uint32_t tensor, bool sequence_parallel, recomputation again) {
  const double s = x.sequence, h = x.hidden, a = x.heads, t = tensor;
  const auto sbh = s * samples * h;
  if (again == recomputation::full)
    return 2 * sbh;
  const auto scores = again == recomputation::none ? 5 * a * s / (h * t) : 0;
  return sbh * ((sequence_parallel ? 34 / t : 10 + 24 / t) + scores);
}

double zero_bytes(uint32_t stage, double ranks, double gradient_bytes) {
  constexpr double weight_bytes = 2, state_bytes = 12; // of an fp32 copy, momentum and variance
  return (stage >= 3 ? weight_bytes / ranks : weight_bytes) + (stage >= 2 ? gradient_bytes / ranks : gradient_bytes)
         + (stage >= 1 ? state_bytes / ranks : state_bytes);
}

} // namespace ringmaster::training
