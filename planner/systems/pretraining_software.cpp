#include "planner/systems/pretraining_software.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace ringmaster::training {

namespace {

constexpr double whole_graph_launches = 0.03; ///< What the graph of a whole iteration leaves.

enum : size_t {
  bf16_part,
  fp8_part_hopper,
  fp8_part_blackwell,
  nvfp4_part,
  ultra,
  flash_part,
  expert_rows,
  launch,
  launch_experts,
  launch_expert,
  launch_cast,
  unhidden,
  unhidden_experts,
  exposed_tensor,
  exposed_gradient,
  exposed_shards,
  dispatch_network,
  dispatch_traffic,
  element_traffic,
  unfused_activation,
  partial_graphs,
  fused_dispatch,
  paired,
  constants
};

constexpr std::array<fitted_constant, constants> fitted{{
  {.name = "bf16 products, part of the peak", .value = 0.7144, .start = 0.72, .pull = 80},
  {.name = "fp8 products, the same, Hopper", .value = 0.6417, .start = 0.62, .pull = 80},
  {.name = "fp8 products, the same, Blackwell", .value = 0.5307, .start = 0.53, .pull = 80},
  {.name = "nvfp4 products, the same", .value = 0.4079, .start = 0.45, .pull = 80},
  {.name = "Blackwell Ultra's, of Blackwell's", .value = 1.282, .start = 7.0 / 6, .pull = 200},
  {.name = "FlashAttention, part of the bf16 peak", .value = 0.4711, .start = 0.5, .pull = 50},
  {.name = "positions of an expert at half the rate", .value = 127.8, .start = 128, .pull = 5},
  {.name = "launching a dense layer, s", .value = 0.0005147, .start = 0.5e-3, .pull = 3},
  {.name = "launching a layer with experts, s", .value = 0.005329, .start = 5e-3, .pull = 3},
  {.name = "launching an expert, s", .value = 0.0001043, .start = 0.1e-3, .pull = 3},
  {.name = "the same, casts, s", .value = 0.0001044, .start = 0.1e-3, .pull = 3},
  {.name = "host beside device, dense, not hidden", .value = 0.1019, .start = 0.1, .pull = 5},
  {.name = "the same, with experts", .value = 0.6203, .start = 0.6, .pull = 5},
  {.name = "tensor-parallel collectives, not hidden", .value = 0.3504, .start = 0.35, .pull = 60},
  {.name = "gradients' collectives, not hidden", .value = 0.3012, .start = 0.3, .pull = 40},
  {.name = "FSDP's collectives, layers beside longer", .value = 0.5994, .start = 0.6, .pull = 20},
  {.name = "dispatch over the network, part of it", .value = 0.8557, .start = 0.9, .pull = 30},
  {.name = "dispatch, copies in memory", .value = 3.841, .start = 4, .pull = 10},
  {.name = "norms, residuals, casts, times their bytes", .value = 1.369, .start = 1.2, .pull = 20},
  {.name = "unfused activations, bytes an element", .value = 67.08, .start = 60, .pull = 5},
  {.name = "launches that graphs of parts leave", .value = 0.7153, .start = 0.7, .pull = 20},
  {.name = "launches with DeepEP, of those without", .value = 0.6471, .start = 0.7, .pull = 20},
  {.name = "launches where dispatch hides, times", .value = 1.431, .start = 1.5, .pull = 5},
}};

void set_experts(gpu_system& x, std::span<const double> v) {
  x.expert_rows = v[expert_rows];
  x.launch_experts_s = v[launch_experts];
  x.launch_expert_s = v[launch_expert];
  x.launch_expert_cast_s = v[launch_cast];
  x.expert_launches = v[partial_graphs] * v[fused_dispatch];
  x.paired_launches = v[paired];
  x.unhidden_experts = v[unhidden_experts];
  x.exposed_expert = 0.2;
  x.dispatch_efficiency = v[dispatch_network];
  x.dispatch_traffic = v[dispatch_traffic];
}

std::array<double, constants> fitted_values() {
  std::array<double, constants> values{};
  std::ranges::transform(fitted, values.begin(), &fitted_constant::value);
  return values;
}

} // namespace

std::span<const fitted_constant> pretraining_constants() {
  return fitted;
}

bool are_parts(std::span<const double> values) {
  ensure(values.size() == constants, "each fitted constant has a value");
  for (auto part : {bf16_part, fp8_part_hopper, unhidden, unhidden_experts, exposed_tensor, exposed_gradient,
                    partial_graphs, fused_dispatch})
    if (values[part] * (part == bf16_part ? values[ultra] : 1) > 1)
      return false;
  return true;
}

gpu_system with_pretraining_software(gpu_system x, gpu_generation of, std::span<const double> v) {
  ensure(v.size() == constants, "each fitted constant has a value");
  x.software = newest_software;
  const auto faster = of == gpu_generation::blackwell_ultra ? v[ultra] : 1;
  x.matrix_efficiency = std::min(v[bf16_part] * faster, x.matrix_most);
  x.fp8_efficiency = std::min(of == gpu_generation::hopper ? v[fp8_part_hopper] : v[fp8_part_blackwell] * faster,
                              x.fp8_most);
  x.nvfp4_efficiency = v[nvfp4_part]; // Ultra's peak is 1.5 times Blackwell's already
  x.attention_efficiency = 0.4;
  x.flash_efficiency = v[flash_part] * faster;
  set_experts(x, v);
  x.kernel_s = 10e-6;
  x.launch_s = v[launch];
  x.launch_ends_s = 1e-3;
  x.launch_scale = 1;
  x.whole_graph_launches = whole_graph_launches;
  x.unhidden = v[unhidden];
  x.exposed_tensor = v[exposed_tensor];
  x.exposed_gradient = v[exposed_gradient];
  x.exposed_shards = v[exposed_shards];
  x.exposed_hop = 0.3;
  x.element_traffic = v[element_traffic];
  x.unfused_activation_bytes = v[unfused_activation];
  x.logit_bytes = 20;
  x.optimizer_bytes = 30;
  x.iteration_s = 10e-3;
  return x;
}

gpu_system with_software(gpu_system x, const training_software& ran, double paired_part, std::span<const double> v) {
  ensure(v.size() == constants, "each fitted constant has a value");
  ensure(paired_part >= 0 && paired_part <= 1, "at most all layers are paired");
  x.expert_launches = (ran.graphs == launch_graphs::none ? 1 : v[partial_graphs])
                      * (ran.dispatches_fused ? v[fused_dispatch] : 1)
                      * (ran.hides_dispatch ? 1 + paired_part * (v[paired] - 1) : 1);
  x.paired_launches = 1; // they are in already
  if (ran.graphs != launch_graphs::whole)
    x.whole_graph_launches = 1;
  if (!ran.hides_dispatch)
    x.exposed_expert = 1;
  if (ran.registers_buffers)
    x.exposed_shards = 0;
  return x;
}

gpu_system with_pretraining_software(gpu_system hardware, gpu_generation of) {
  return with_pretraining_software(std::move(hardware), of, fitted_values());
}

gpu_system with_pretraining_rest(gpu_system x) {
  ensure(x.launch_scale > 0, "launches take time");
  set_experts(x, fitted_values());
  x.exposed_shards = fitted[exposed_shards].value;
  x.experts_of = "h100-80g";
  for (auto* seconds : {&x.launch_experts_s, &x.launch_expert_s, &x.launch_expert_cast_s})
    *seconds /= x.launch_scale; // the host is none the faster
  return x;
}

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
