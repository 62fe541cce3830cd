#include "planner/systems/gpu_system.hpp"

#include <array>

namespace ringmaster::training {

double gpu_system::peak_of(number_format x) const {
  switch (x) {
    case number_format::fp8: return fp8_flops;
    case number_format::mxfp8: return mxfp8_flops;
    case number_format::nvfp4: return nvfp4_flops;
    default: return peak_flops;
  }
}

double gpu_system::product_rate(number_format x) const {
  const auto part = x == number_format::bf16    ? matrix_efficiency
                    : x == number_format::nvfp4 ? nvfp4_efficiency
                                                : fp8_efficiency;
  return peak_of(x) * part;
}

std::span<const system_constant> system_constants() {
  using s = gpu_system;
  static const std::array<system_constant, 56> all{{
    {"peak_flops", &s::peak_flops},
    {"fp8_flops", &s::fp8_flops},
    {"mxfp8_flops", &s::mxfp8_flops},
    {"nvfp4_flops", &s::nvfp4_flops},
    {"memory_bytes", &s::memory_bytes},
    {"reserved_bytes", &s::reserved_bytes},
    {"memory_peak_bandwidth", &s::memory_peak_bandwidth},
    {"memory_bandwidth", &s::memory_bandwidth},
    {"host_memory_bytes", &s::host_memory_bytes},
    {"host_link_bandwidth", &s::host_link_bandwidth},
    {"watts", &s::watts},
    {"devices_per_host", &s::devices_per_host},
    {"devices_per_tray", &s::devices_per_tray},
    {"link_per_device", &s::link_per_device},
    {"host_bandwidth", &s::host_bandwidth},
    {"host_latency_s", &s::host_latency_s},
    {"network_per_device", &s::network_per_device},
    {"network_bandwidth", &s::network_bandwidth},
    {"hop_bandwidth", &s::hop_bandwidth},
    {"hop_latency_s", &s::hop_latency_s},
    {"ring_step_s", &s::ring_step_s},
    {"ring_hop_s", &s::ring_hop_s},
    {"devices_per_pod", &s::devices_per_pod},
    {"pod_bandwidth", &s::pod_bandwidth},
    {"matrix_efficiency", &s::matrix_efficiency},
    {"fp8_efficiency", &s::fp8_efficiency},
    {"nvfp4_efficiency", &s::nvfp4_efficiency},
    {"attention_efficiency", &s::attention_efficiency},
    {"flash_efficiency", &s::flash_efficiency},
    {"expert_rows", &s::expert_rows},
    {"kernel_s", &s::kernel_s},
    {"launch_s", &s::launch_s},
    {"launch_tensor_s", &s::launch_tensor_s},
    {"launch_unfused_s", &s::launch_unfused_s},
    {"launch_experts_s", &s::launch_experts_s},
    {"launch_expert_s", &s::launch_expert_s},
    {"launch_expert_cast_s", &s::launch_expert_cast_s},
    {"expert_launches", &s::expert_launches},
    {"paired_launches", &s::paired_launches},
    {"whole_graph_launches", &s::whole_graph_launches},
    {"launch_ends_s", &s::launch_ends_s},
    {"launch_scale", &s::launch_scale},
    {"unhidden", &s::unhidden},
    {"unhidden_experts", &s::unhidden_experts},
    {"exposed_tensor", &s::exposed_tensor},
    {"exposed_expert", &s::exposed_expert},
    {"dispatch_efficiency", &s::dispatch_efficiency},
    {"exposed_gradient", &s::exposed_gradient},
    {"exposed_hop", &s::exposed_hop},
    {"exposed_shards", &s::exposed_shards},
    {"dispatch_traffic", &s::dispatch_traffic},
    {"element_traffic", &s::element_traffic},
    {"unfused_activation_bytes", &s::unfused_activation_bytes},
    {"logit_bytes", &s::logit_bytes},
    {"optimizer_bytes", &s::optimizer_bytes},
    {"iteration_s", &s::iteration_s},
  }};
  return all;
}

} // namespace ringmaster::training
