#include "planner/systems/software_generation.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ringmaster::training {

namespace {

constexpr training_software newest{.graphs = launch_graphs::whole, .hides_dispatch = true, .dispatches_fused = true};
constexpr training_software of_2025{};
constexpr training_software own_overlap{.hides_dispatch = true, .dispatches_fused = true};

constexpr double assumed_error = 0.2; ///< Of estimates with which nothing published was compared.
constexpr double nemo_error = 0.1;    ///< Of dense models in bf16: NeMo's took up to 1.1 times as long.
/// On A100 with flash attention, by which part estimates of dense models are too small beside published trainings.
constexpr double flash_least = 0.08, flash_most = 0.31;

constexpr std::array<std::string_view, 1> on_a100{"a100-80g"}, on_h100{"h100-80g"}, on_h800{"h800-80g"};
constexpr std::array<std::string_view, 2> on_hopper{"h100-80g", "h200-141g"};
constexpr std::array<number_format, 1> bf16{number_format::bf16}, fp8{number_format::fp8};
constexpr std::array<number_format, 2> bf16_and_fp8{number_format::bf16, number_format::fp8};

constexpr std::array<software_generation, 7> generations{{
  {.name = newest_software,
   .what = "Megatron Core of 2025 to 2026, graphs and hidden dispatch wherever it has them",
   .experts = newest,
   .dense_error = 0.05,
   .experts_error = 0.08},
  {.name = "megatron-2025",
   .what = "Megatron Core 25.11 of 2025: experts without graphs, dispatched by all_to_all",
   .experts = of_2025,
   .dense_error = 0.05,
   .experts_error = 0.08},
  {.name = "nemo-2024",
   .what = "NeMo 24.09 to 24.11, late in 2024",
   .products = 0.9178,
   .experts = of_2025,
   .dense_error = 0.02,
   .systems = on_h100,
   .formats = bf16},
  {.name = "megatron-2024",
   .what = "Megatron-LM and its kin of early 2024, as Llama 3 and Nemotron-4 were trained",
   .products = 0.7787,
   .experts = of_2025,
   .dense_error = 0.08,
   .systems = on_h100,
   .formats = bf16},
  {.name = "deepseek-2024",
   .what = "DeepSeek's own of 2024: DualPipe and DeepEP, no graphs",
   .experts = own_overlap,
   .experts_error = 0.07,
   .systems = on_h800,
   .formats = fp8},
  {.name = "fsdp",
   .what = "PyTorch's FSDP with torch.compile, as TorchTitan of 2024 to 2025",
   .products = 0.5547,
   .experts = of_2025,
   .dense_error = 0.08,
   .systems = on_hopper,
   .formats = bf16_and_fp8,
   .fully_sharded = true},
  {.name = software_of_a100,
   .what = "Megatron-LM on A100, as published from 2022 to 2024",
   .experts = of_2025,
   .dense_error = 0.05,
   .systems = on_a100,
   .formats = bf16},
}};

estimate_error assumed(double part, std::string why) {
  ensure(part > 0 && part < 1 && !why.empty(), "an assumed error is a part, and has a reason");
  return {part, 1 - part, 1 + part, std::move(why)};
}

std::string_view with_or_without(bool experts) {
  return experts ? "with" : "without";
}

} // namespace

std::span<const software_generation> software_generations() {
  return generations;
}

const software_generation* generation_of(std::string_view name) {
  const auto at = std::ranges::find(generations, name, &software_generation::name);
  return at == generations.end() ? nullptr : &*at;
}

gpu_system with_generation(gpu_system x, const software_generation& of, double products) {
  ensure(products > 0, "software computes products");
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

bool was_compared_on(const gpu_system& on, const software_generation& of) {
  return of.systems.empty() ? on.constants_of.empty() : std::ranges::count(of.systems, on.name) > 0;
}

estimate_error error_of_estimates(const gpu_system& on, const estimated_training& x) {
  const auto* of = generation_of(on.software);
  if (of == nullptr)
    return assumed(assumed_error, fmt::format("no training on {} was compared", on.name));
  if (!was_compared_on(on, *of))
    return assumed(assumed_error, fmt::format("no training on {} by {} was compared", on.name, of->name));
  const auto& error = x.experts ? of->experts_error : of->dense_error;
  if (!error)
    return assumed(assumed_error, fmt::format("no training of a model {} experts by {} was compared",
                                              with_or_without(x.experts), of->name));
  if (of->formats.empty() && !was_published(x.computed_in, x.experts))
    return assumed(x.experts ? assumed_error : nemo_error,
                   fmt::format("no training of a model {} experts in {} by {} was compared", with_or_without(x.experts),
                               name_of(x.computed_in), of->name));
  if (!of->formats.empty() && std::ranges::count(of->formats, x.computed_in) == 0)
    return assumed(assumed_error,
                   fmt::format("no training in {} by {} was compared", name_of(x.computed_in), of->name));
  if (on.fitted_with_flash && !x.flash)
    return assumed(assumed_error, "unfused attention's part of the peak is set by hand");
  if (!on.fitted_with_flash && x.flash) {
    const auto least = 1 / (1 - flash_least), most = 1 / (1 - flash_most);
    return {most / least - 1, least, most, std::nullopt};
  }
  return {*error, 1 - *error, 1 + *error, std::nullopt};
}

caf::expected<gpu_system> with_generation(gpu_system x, const software_generation& of) {
  if (x.software == of.name)
    return x;
  if (x.software != newest_software)
    return invalid(x.software.empty()
                     ? fmt::format("--software {} is of GPUs: {} has none of these programs", of.name, x.name)
                     : fmt::format("the constants of {} are those of {}: no training there by {} was measured", x.name,
                                   x.software, of.name));
  if (of.name == software_of_a100)
    return invalid(fmt::format("--software {} was measured on A100 alone, and not on {}", of.name, x.name));
  return with_generation(std::move(x), of, of.products);
}

} // namespace ringmaster::training
