#include "planner/systems/pretraining_software.hpp"

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
  {"bf16 products, part of the peak", 0.7144, 0.72, 80},
  {"fp8 products, the same, Hopper", 0.6417, 0.62, 80},
  {"fp8 products, the same, Blackwell", 0.5307, 0.53, 80},
  {"nvfp4 products, the same", 0.4079, 0.45, 80},
  {"Blackwell Ultra's, of Blackwell's", 1.282, 7.0 / 6, 200},
  {"FlashAttention, part of the bf16 peak", 0.4711, 0.5, 50},
  {"positions of an expert at half the rate", 127.8, 128, 5},
  {"launching a dense layer, s", 0.0005147, 0.5e-3, 3},
  {"launching a layer with experts, s", 0.005329, 5e-3, 3},
  {"launching an expert, s", 0.0001043, 0.1e-3, 3},
  {"the same, casts, s", 0.0001044, 0.1e-3, 3},
  {"host beside device, dense, not hidden", 0.1019, 0.1, 5},
  {"the same, with experts", 0.6203, 0.6, 5},
  {"tensor-parallel collectives, not hidden", 0.3504, 0.35, 60},
  {"gradients' collectives, not hidden", 0.3012, 0.3, 40},
  {"FSDP's collectives, layers beside longer", 0.5994, 0.6, 20},
  {"dispatch over the network, part of it", 0.8557, 0.9, 30},
  {"dispatch, copies in memory", 3.841, 4, 10},
  {"norms, residuals, casts, times their bytes", 1.369, 1.2, 20},
  {"unfused activations, bytes an element", 67.08, 60, 5},
  {"launches that graphs of parts leave", 0.7153, 0.7, 20},
  {"launches with DeepEP, of those without", 0.6471, 0.7, 20},
  {"launches where dispatch hides, times", 1.431, 1.5, 5},
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
  for (auto part : {bf16_part, fp8_part_hopper, unhidden, unhidden_experts, exposed_tensor, exposed_gradient,
                    partial_graphs, fused_dispatch})
    if (values[part] * (part == bf16_part ? values[ultra] : 1) > 1)
      return false;
  return true;
}

gpu_system with_pretraining_software(gpu_system x, gpu_generation of, std::span<const double> v) {
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
  set_experts(x, fitted_values());
  x.exposed_shards = fitted[exposed_shards].value;
  x.experts_of = "h100-80g";
  for (auto* seconds : {&x.launch_experts_s, &x.launch_expert_s, &x.launch_expert_cast_s})
    *seconds /= x.launch_scale; // the host is none the faster
  return x;
}

} // namespace ringmaster::training
