#include "planner/systems/pretraining_software.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <array>

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

} // namespace ringmaster::training
