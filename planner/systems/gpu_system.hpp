#pragma once

#include "planner/systems/number_format.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// Whose speed the constants of systems are (pretraining_software.hpp).
inline constexpr std::string_view newest_software = "megatron-2026", software_of_a100 = "megatron-2022";

/// A cluster of devices, in domains whose devices reach each other's memory (NVLink's; a host, or a rack), the domains
/// in a network, perhaps in pods; and what the software reaches on it. Seconds, bytes, operations; a second's worth of
/// each. docs/cost_models.md says which are data sheets' and which are fitted.
struct gpu_system {
  std::string name = "own";
  std::string constants_of;         ///< The system whose fitted constants it has; empty: its own.
  std::string_view software{};      ///< Whose speed these are: a software_generation's name; empty: no GPU's.
  std::string_view experts_of{};    ///< The same of what experts cost beside their products.
  std::string_view caution{};       ///< How estimates by these are known to be off, a phrase; empty: that is not known.
  bool fitted_with_flash = true;    ///< Whether these are of trainings with FlashAttention, or of those without.
  double peak_flops = 0;            ///< Of a device, dense, bf16.
  double fp8_flops = 0;             ///< The same, fp8; 0: it has none.
  double mxfp8_flops = 0;           ///< The same, mxfp8, whose scales the products themselves apply; 0: it has none.
  double nvfp4_flops = 0;           ///< 0: it has none.
  double memory_bytes = 0;          ///< Of a device.
  double reserved_bytes = 0;        ///< Of these, not for the model.
  double memory_peak_bandwidth = 0; ///< Of a device, as its data sheet has it.
  double memory_bandwidth = 0;      ///< Of that, what large kernels reach.
  double host_link_bandwidth = 25e9; ///< Of a device, to its host's memory.
  double host_memory_bytes = 0;      ///< Of the host's memory, a device's share.
  double watts = 0;                  ///< Of a device with its share of the host, at work; 0: not known.
  double devices_per_host = 0;       ///< Of a domain.
  double devices_per_tray = 0;       ///< That fail and are replaced together; 0: a domain's.
  double link_per_device = 0;        ///< Of a device into its domain, each way, as its data sheet has it; 0: none.
  double host_bandwidth = 0;         ///< Of that, the bus bandwidth of an all_reduce within a domain.
  double host_latency_s = 0;         ///< Of one.
  double network_per_device = 0;     ///< Of a device's card, each way, as its data sheet has it.
  double network_bandwidth = 0;      ///< What collectives reach of a domain's, all its cards together.
  double hop_bandwidth = 0;          ///< What a device reaches of its card, to another domain.
  double hop_latency_s = 0;
  double ring_step_s = 0;     ///< Of a ring of shards from a device to the next in its domain, beside its bytes,
  double ring_hop_s = 0;      ///< and to one in another domain (NCCL's tuning model, protocol Simple).
  double devices_per_pod = 0; ///< Whose domains have the network's full bandwidth, some whole ones; 0: all.
  double pod_bandwidth = 0;   ///< Of a domain, to other pods; where there are pods.

  double matrix_most = 1;          ///< Part of the bf16 peak that the fastest products have been seen to reach.
  double fp8_most = 1;             ///< The same of fp8's.
  double matrix_efficiency = 0;    ///< Part of the peak that large products with weights reach, bf16.
  double fp8_efficiency = 1;       ///< Of fp8's peak, as a part of that.
  double nvfp4_efficiency = 1;     ///< Of nvfp4's.
  double attention_efficiency = 0; ///< Part of the peak, products of scores that are in memory.
  double flash_efficiency = 0;     ///< The same of FlashAttention, of the operations that a causal mask leaves.
  double expert_rows = 0;          ///< Positions with which an expert's products reach half of that.
  double kernel_s = 0;             ///< Of each kernel, however small.
  double launch_s = 0;        ///< Of the host's thread, to launch a layer's forward and backward for a micro-batch.
  double launch_tensor_s = 0; ///< More for each further tensor-parallel rank.
  double launch_unfused_s
    = 0; ///< More where the fused softmax does not apply: micro-batch x heads / tensor no multiple of 4.
  double launch_experts_s = 0;     ///< Of a layer with experts, in the room of launch_s.
  double launch_expert_s = 0;      ///< More for each expert on the device.
  double launch_expert_cast_s = 0; ///< More for each of them where its inputs are cast.
  double expert_launches = 1;      ///< Part of these that is left, where graphs have the rest.
  double whole_graph_launches = 1; ///< The same in mxfp8, where a graph has the whole iteration; 1: there is none.
  double paired_launches = 1;      ///< These of a layer that goes beside another micro-batch's, to hide its dispatch.
  double launch_ends_s = 0;        ///< To launch a micro-batch's embedding and loss.
  double launch_scale = 1;         ///< Of these, for another generation of the software.
  double unhidden = 0;         ///< Part of the smaller of device and host time that is not hidden behind the larger.
  double unhidden_experts = 1; ///< The same in a layer with experts, whose host waits for how many positions each gets.
  double exposed_tensor = 1;   ///< Part of tensor-parallel collectives that is not hidden behind products.
  double exposed_expert = 1;   ///< The same of experts' dispatch and combine, where other work is at hand.
  double dispatch_efficiency = 1;      ///< Part of the network's bandwidth that these reach.
  double exposed_gradient = 1;         ///< The same of gradients' and weights' collectives where they are overlapped.
  double exposed_hop = 1;              ///< The same of hops between stages.
  double exposed_shards = 0;           ///< Of FSDP's collectives, by which part layers beside them take longer.
  double dispatch_traffic = 0;         ///< Times that a position's copy for an expert is read or written, forward.
  double element_traffic = 1;          ///< Of norms, residuals and casts, what moves for each byte that must.
  double unfused_activation_bytes = 0; ///< More memory traffic of an activation function that has no kernel of its own.
  double logit_bytes = 0;              ///< Memory traffic of a logit, loss forward and backward.
  double optimizer_bytes = 0;          ///< Memory traffic of a parameter's update.
  double iteration_s = 0;              ///< Of a step, whatever it does.

  /// Of a device, dense; 0: it has no such products.
  double peak_of(number_format x) const;
  /// Whether the host launches a whole iteration at once, and experts' activation functions are within their products.
  bool launches_whole(number_format x) const { return x == number_format::mxfp8 && whole_graph_launches < 1; }
  /// Of a device's memory, for the model.
  double room_bytes() const { return memory_bytes - reserved_bytes; }
  /// What products with weights reach of it.
  double product_rate(number_format x) const;
};

/// a100-80g, whose constants are calibrated (docs/cost_models.md), and others from data sheets with its efficiencies.
std::span<const gpu_system> known_systems();

/// A known one by name, one from a JSON file, or a known one by its beginning ("h100"). The file has an object with the
/// members' names; those that are missing are as in "like", a known one's name, which it must have. Rates, bandwidths,
/// memory and seconds may be texts with units: "989 TFLOP/s", "400Gbps", "80GB", "30us". Of what data sheets say
/// (memory_peak_bandwidth, link_per_device, network_per_device) the same part is reached as there, and a domain's
/// network grows with its devices; what is reached may be given instead. Errors: invalid_argument, naming what there
/// is; io_error; corrupt, with the file, the place and the value.
caf::expected<gpu_system> system_of(const std::string& name_or_file);
/// The same from the file's text.
caf::expected<gpu_system> parse_system(std::string_view document);

/// A member that calibration may set, by its name.
struct system_constant {
  std::string_view name;
  double gpu_system::*member;
};
std::span<const system_constant> system_constants();

} // namespace ringmaster::training
