#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// A cluster of hosts with devices: what a transformer's layers take on it. Seconds, bytes, operations; a second's
/// worth of each.
struct gpu_system {
  std::string name = "own";
  double peak_flops = 0;           ///< Of a device, dense, in the datatype that is trained in.
  double memory_bytes = 0;         ///< Of a device.
  double reserved_bytes = 0;       ///< Of these, not for the model.
  double memory_bandwidth = 0;     ///< That large kernels reach.
  double matrix_efficiency = 0;    ///< Part of the peak that large products with weights reach.
  double attention_efficiency = 0; ///< The same, products of scores.
  double kernel_s = 0;             ///< Of each kernel, however small.
  double devices_per_host = 0;
  double host_bandwidth = 0;    ///< Bus bandwidth of an all_reduce within a host.
  double host_latency_s = 0;    ///< Of one.
  double network_bandwidth = 0; ///< Of a host, collectives.
  double hop_bandwidth = 0;     ///< Of a device, to another host.
  double hop_latency_s = 0;
  double launch_s = 0;        ///< Of the host's thread, to launch a layer's forward and backward for a micro-batch.
  double launch_tensor_s = 0; ///< More for each further tensor-parallel rank.
  double launch_unfused_s
    = 0; ///< More where the fused softmax does not apply: micro-batch x heads / tensor no multiple of 4.
  double launch_ends_s = 0;   ///< To launch a micro-batch's embedding and loss.
  double launch_scale = 1;    ///< Of these four, for another generation of the software.
  double unhidden = 0;        ///< Part of the smaller of device and host time that is not hidden behind the larger.
  double logit_bytes = 0;     ///< Memory traffic of a logit, loss forward and backward.
  double optimizer_bytes = 0; ///< Memory traffic of a parameter's update.
  double iteration_s = 0;     ///< Of a step, whatever it does.
};

/// a100-80g, whose constants are calibrated (docs/cost_models.md), and others from data sheets with its efficiencies.
std::span<const gpu_system> known_systems();

/// A known one by name, or one from a JSON file: an object with the members' names; those that are missing are as in
/// "like", a known one's name, which it must have. Errors: invalid_argument, naming what there is, or the file, the
/// place and the value.
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
