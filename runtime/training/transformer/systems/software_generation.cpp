#include "runtime/training/transformer/systems/software_generation.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ringmaster::training {

namespace {

constexpr training_software newest{launch_graphs::whole, true, true}, of_2025{launch_graphs::none, false, false},
  own_overlap{launch_graphs::none, true, true};

constexpr double not_measured = 0.2; ///< The error of an estimate with which nothing published was compared.

constexpr std::array<software_generation, 7> all{{
  {newest_software, "Megatron Core of 2025 to 2026, graphs and hidden dispatch wherever it has them", 1, newest, 0.05,
   0.08},
  {"megatron-2025", "Megatron Core 25.11 of 2025: experts without graphs, dispatched by all_to_all", 1, of_2025, 0.05,
   0.08},
  {"nemo-2024", "NeMo 24.09 to 24.11, late in 2024", 0.9178, of_2025, 0.02, not_measured},
  {"megatron-2024", "Megatron-LM and its kin of early 2024, as Llama 3 and Nemotron-4 were trained", 0.7787, of_2025,
   0.08, not_measured},
  {"deepseek-2024", "DeepSeek's own of 2024: DualPipe and DeepEP, no graphs", 1, own_overlap, not_measured, 0.07},
  {"fsdp", "PyTorch's FSDP with torch.compile, as TorchTitan of 2024 to 2025", 0.5547, of_2025, 0.08, not_measured,
   true},
  {software_of_a100, "Megatron-LM on A100, as published from 2022 to 2024", 1, of_2025, 0.05, not_measured},
}};

} // namespace

std::span<const software_generation> software_generations() {
  return all;
}

const software_generation* generation_of(std::string_view name) {
  const auto at = std::ranges::find(all, name, &software_generation::name);
  return at == all.end() ? nullptr : &*at;
}

gpu_system with_generation(gpu_system x, const software_generation& of, double products) {
  if (of.name == newest_software)
    return x;
  std::vector<double> values;
  for (auto& each : pretraining_constants())
    values.push_back(each.value);
  const auto pairs = x.paired_launches;
  x = with_software(std::move(x), of.experts, 0, values);
  if (of.experts.hides_dispatch) // where that is faster
    x.paired_launches = pairs;
  for (auto* part : {&x.matrix_efficiency, &x.fp8_efficiency, &x.nvfp4_efficiency})
    *part *= products;
  x.software = of.name;
  return x;
}

double estimate_error(const gpu_system& on, bool experts) {
  const auto* of = generation_of(on.software);
  return of == nullptr ? not_measured : experts ? of->experts_error : of->dense_error;
}

caf::expected<gpu_system> with_generation(gpu_system x, const software_generation& of) {
  if (x.software == of.name)
    return x;
  if (x.software != newest_software)
    return make_error(errc::invalid_argument,
                      x.software.empty()
                        ? fmt::format("--software {} is of GPUs: {} has none of these programs", of.name, x.name)
                        : fmt::format("the constants of {} are those of {}: no training there by {} was measured",
                                      x.name, x.software, of.name));
  if (of.name == software_of_a100)
    return make_error(errc::invalid_argument,
                      fmt::format("--software {} was measured on A100 alone, and not on {}", of.name, x.name));
  return with_generation(std::move(x), of, of.products);
}

} // namespace ringmaster::training
