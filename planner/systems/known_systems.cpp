// Peaks, links and power are data sheets', and memory where drivers' own figures were not found; how much of them is
// reached, docs/cost_models.md says. The most that products reach of their peaks: Bekman, Machine Learning Engineering,
// "Maximum Achievable Matmul FLOPS", as of August 2026.
#include "planner/systems/gpu_system.hpp"
#include "planner/systems/pretraining_software.hpp"
#include "runtime/invariants/ensure.hpp"

#include <array>

namespace ringmaster::training {

namespace {

constexpr double mebi = 1 << 20;

/// NVIDIA A100 80 GB, 8 a host, NVLink 3, 8 x 200 Gb/s InfiniBand, under Megatron-LM.
gpu_system a100() {
  gpu_system x;
  x.name = "a100-80g";
  x.software = software_of_a100;
  x.fitted_with_flash = false;
  x.peak_flops = 312e12;
  x.memory_bytes = 81920 * mebi;
  x.reserved_bytes = 4e9;
  x.memory_peak_bandwidth = 2039e9;
  x.memory_bandwidth = 1.4e12;
  x.host_memory_bytes = 2e12 / 8;
  x.watts = 400;
  x.devices_per_host = 8;
  x.link_per_device = 300e9;
  x.host_bandwidth = 235e9;
  x.host_latency_s = 50e-6;
  x.network_per_device = 25e9;
  x.network_bandwidth = 100e9;
  x.hop_bandwidth = 12.5e9;
  x.hop_latency_s = 100e-6;
  x.ring_step_s = 3.4e-6;
  x.ring_hop_s = 14e-6;
  x.matrix_efficiency = 0.8684;
  x.attention_efficiency = 0.4;
  x.flash_efficiency = 0.6;
  x.kernel_s = 18.64e-6;
  x.launch_s = 2.529e-3;
  x.launch_tensor_s = 80.82e-6;
  x.launch_unfused_s = 0.988e-3;
  x.launch_ends_s = 5.646e-3;
  x.launch_scale = 0.5;
  x.unhidden = 0.3434;
  x.logit_bytes = 64.23;
  x.optimizer_bytes = 30;
  x.iteration_s = 1e-3;
  return with_pretraining_rest(x);
}

gpu_system a100_40g() {
  auto x = a100();
  x.name = "a100-40g";
  x.constants_of = "a100-80g";
  x.memory_bytes = 40960 * mebi;
  x.memory_peak_bandwidth = 1555e9;
  x.memory_bandwidth *= 1555.0 / 2039;
  x.host_memory_bytes = 1e12 / 8;
  return x;
}

/// NVIDIA DGX H100 under Megatron Core of 2025 to 2026: NVLink 4, 8 x 400 Gb/s.
gpu_system h100_hardware() {
  gpu_system x;
  x.name = "h100-80g";
  x.peak_flops = 989e12;
  x.fp8_flops = 1979e12;
  x.memory_bytes = 81559 * mebi;
  x.reserved_bytes = 4e9;
  x.memory_peak_bandwidth = 3350e9;
  x.memory_bandwidth = 0.8 * 3350e9;
  x.host_link_bandwidth = 55e9;
  x.host_memory_bytes = 2e12 / 8;
  x.watts = 700;
  x.devices_per_host = 8;
  x.link_per_device = 450e9;
  x.host_bandwidth = 360e9;
  x.host_latency_s = 20e-6;
  x.network_per_device = 50e9;
  x.network_bandwidth = 8 * 45e9;
  x.hop_bandwidth = 45e9;
  x.hop_latency_s = 30e-6;
  x.ring_step_s = 3.4e-6;
  x.ring_hop_s = 14e-6;
  x.matrix_most = 0.803;
  x.fp8_most = 0.709;
  return x;
}

/// NVIDIA H800, as of DeepSeek-AI 2024, section 3.1: an H100 whose NVLink has 200 GB/s each way, of which its
/// collectives are said to reach 160 GB/s.
gpu_system h800_hardware() {
  auto x = h100_hardware();
  x.name = "h800-80g";
  x.constants_of = "h100-80g";
  x.link_per_device = 200e9;
  x.host_bandwidth = 160e9;
  return x;
}

gpu_system h200_hardware() {
  auto x = h100_hardware();
  x.name = "h200-141g";
  x.constants_of = "h100-80g";
  x.memory_bytes = 143771 * mebi;
  x.memory_peak_bandwidth = 4800e9;
  x.memory_bandwidth *= 4800.0 / 3350;
  x.fp8_most = 0.734;
  return x;
}

/// NVIDIA DGX B200: NVLink 5, 8 x 400 Gb/s.
gpu_system b200_hardware() {
  auto x = h100_hardware();
  x.name = "b200";
  x.peak_flops = 2250e12;
  x.fp8_flops = x.mxfp8_flops = 4500e12;
  x.nvfp4_flops = 9000e12;
  x.memory_bytes = 183359 * mebi;
  x.memory_peak_bandwidth = 8000e9;
  x.memory_bandwidth = 0.8 * 8000e9;
  x.watts = 1000;
  x.link_per_device = 900e9;
  x.host_bandwidth = 700e9;
  x.matrix_most = 0.776;
  x.fp8_most = 0.763;
  return x;
}

/// NVIDIA DGX B300: the same with more memory, more of nvfp4, and 8 x 800 Gb/s.
gpu_system b300_hardware() {
  auto x = b200_hardware();
  x.name = "b300";
  x.nvfp4_flops = 13500e12;
  x.memory_bytes = 270e9;
  x.watts = 1100;
  x.network_per_device = 100e9;
  x.network_bandwidth = 8 * 90e9;
  x.hop_bandwidth = 90e9;
  x.matrix_most = 0.786;
  x.fp8_most = 0.745;
  return x;
}

/// NVIDIA GB200 NVL72: 72 GPUs in a domain of NVLink 5, 4 in a compute tray, 400 Gb/s each.
gpu_system gb200_hardware() {
  auto x = b200_hardware();
  x.name = "gb200-nvl72";
  x.peak_flops = 2500e12;
  x.fp8_flops = x.mxfp8_flops = 5000e12;
  x.nvfp4_flops = 10000e12;
  x.memory_bytes = 186e9;
  x.host_link_bandwidth = 200e9;
  x.host_memory_bytes = 17e12 / 72;
  x.watts = 1200;
  x.devices_per_host = 72;
  x.devices_per_tray = 4;
  x.network_bandwidth = 72 * 45e9;
  x.matrix_most = 0.729;
  x.fp8_most = 0.723;
  return x;
}

gpu_system gb300_hardware() {
  auto x = gb200_hardware();
  x.name = "gb300-nvl72";
  x.nvfp4_flops = 15000e12;
  x.memory_bytes = 279e9;
  x.watts = 1400;
  x.network_per_device = 100e9;
  x.network_bandwidth = 72 * 90e9;
  x.hop_bandwidth = 90e9;
  x.matrix_most = 0.786; // as of a B300: no figure of its own is published
  x.fp8_most = 0.745;
  return x;
}

/// AMD Instinct MI300X, 8 a host: Infinity Fabric of 7 x 64 GB/s, 8 x 400 Gb/s.
gpu_system mi300x_hardware() {
  auto x = h100_hardware();
  x.name = "mi300x";
  x.constants_of = "h100-80g";
  x.caution
    = "its products are taken at the 51 % of the bf16 peak that were seen, its fp8 by the same; the rest is Hopper's";
  x.peak_flops = 1307e12;
  x.fp8_flops = 2615e12;
  x.memory_bytes = 196592 * mebi;
  x.memory_peak_bandwidth = 5300e9;
  x.memory_bandwidth = 0.8 * 5300e9;
  x.watts = 750;
  x.link_per_device = 7 * 64e9;
  x.host_bandwidth = 300e9;
  x.matrix_most = x.fp8_most = 0.514;
  return x;
}

/// A virtual machine with two cores: 2 x 16 float32 multiply-adds at 2.5 GHz, 24 GB, a memory of 17 GB/s, 10 Gb/s
/// Ethernet; no kernels to launch.
gpu_system two_core_host() {
  auto x = a100();
  x.name = "cpu-2core";
  x.software = {};
  x.constants_of = "a100-80g";
  x.peak_flops = 160e9;
  x.memory_bytes = x.host_memory_bytes = 24e9;
  x.reserved_bytes = 2e9;
  x.memory_peak_bandwidth = 17e9;
  x.memory_bandwidth = 17e9;
  x.watts = 0;
  x.matrix_efficiency = 0.7;
  x.kernel_s = 2e-6;
  x.devices_per_host = 1;
  x.link_per_device = 0;
  x.host_bandwidth = 8e9;
  x.host_latency_s = 10e-6;
  x.network_per_device = 1.25e9;
  x.network_bandwidth = x.hop_bandwidth = 1.1e9;
  x.launch_s = x.launch_tensor_s = x.launch_unfused_s = x.launch_ends_s = x.iteration_s = 0;
  x.launch_experts_s = x.launch_expert_s = x.launch_expert_cast_s = 0;
  return x;
}

/// Data sheets and fits agree with each other.
template <class Systems>
Systems checked(Systems all) {
  for (auto& x : all) {
    ensure(x.peak_flops > 0 && x.memory_bytes > x.reserved_bytes, "a device computes, and has memory for a model");
    ensure(x.memory_bandwidth > 0 && x.memory_bandwidth <= x.memory_peak_bandwidth,
           "memory is no faster than its peak");
    ensure(x.devices_per_host >= 1 && x.host_bandwidth > 0 && x.network_bandwidth > 0, "domains are connected");
    ensure(x.hop_bandwidth <= x.network_per_device, "a hop is no faster than its card");
    ensure(x.matrix_efficiency > 0 && x.matrix_efficiency <= x.matrix_most, "products reach a part of the peak");
  }
  return all;
}

} // namespace

std::span<const gpu_system> known_systems() {
  using enum gpu_generation;
  auto with = [](gpu_system x, gpu_generation of) { return with_pretraining_software(std::move(x), of); };
  static const std::array all = checked(std::array{
    a100(), a100_40g(), with(h100_hardware(), hopper), with(h800_hardware(), hopper), with(h200_hardware(), hopper),
    with(b200_hardware(), blackwell), with(b300_hardware(), blackwell_ultra), with(gb200_hardware(), blackwell),
    with(gb300_hardware(), blackwell_ultra), with(mi300x_hardware(), hopper), two_core_host()});
  return all;
}

} // namespace ringmaster::training
