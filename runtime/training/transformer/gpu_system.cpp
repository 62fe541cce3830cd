#include "runtime/training/transformer/gpu_system.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ringmaster::training {

namespace {

/// NVIDIA A100 80 GB, 8 a host, NVLink 3, 8 x 200 Gb/s InfiniBand, under Megatron-LM.
gpu_system a100() {
  gpu_system x;
  x.name = "a100-80g";
  x.peak_flops = 312e12;
  x.memory_bytes = 80e9;
  x.reserved_bytes = 4e9;
  x.memory_bandwidth = 1.4e12;
  x.matrix_efficiency = 0.8684;
  x.attention_efficiency = 0.4;
  x.kernel_s = 18.74e-6;
  x.devices_per_host = 8;
  x.host_bandwidth = 235e9;
  x.host_latency_s = 50e-6;
  x.network_bandwidth = 100e9;
  x.hop_bandwidth = 12.5e9;
  x.hop_latency_s = 100e-6;
  x.launch_s = 2.533e-3;
  x.launch_tensor_s = 80.7e-6;
  x.launch_unfused_s = 0.9879e-3;
  x.launch_ends_s = 5.62e-3;
  x.launch_scale = 0.5;
  x.unhidden = 0.3415;
  x.logit_bytes = 64.26;
  x.optimizer_bytes = 30;
  x.iteration_s = 1e-3;
  return x;
}

gpu_system a100_40g() {
  auto x = a100();
  x.name = "a100-40g";
  x.memory_bytes = 40e9;
  x.memory_bandwidth *= 1555.0 / 2039;
  return x;
}

/// From the data sheet: 989 TFLOP/s bf16, 3.35 TB/s, NVLink 4, 8 x 400 Gb/s.
gpu_system h100() {
  auto x = a100();
  x.name = "h100-80g";
  x.peak_flops = 989e12;
  x.memory_bandwidth *= 3350.0 / 2039;
  x.host_bandwidth *= 900.0 / 600;
  x.network_bandwidth *= 2;
  x.hop_bandwidth *= 2;
  return x;
}

gpu_system h200() {
  auto x = h100();
  x.name = "h200-141g";
  x.memory_bytes = 141e9;
  x.memory_bandwidth *= 4800.0 / 3350;
  return x;
}

/// A virtual machine with two cores: 2 x 16 float32 multiply-adds at 2.5 GHz, 24 GB, a memory of 17 GB/s, 10 Gb/s
/// Ethernet; no kernels to launch.
gpu_system two_core_host() {
  auto x = a100();
  x.name = "cpu-2core";
  x.peak_flops = 160e9;
  x.memory_bytes = 24e9;
  x.reserved_bytes = 2e9;
  x.memory_bandwidth = 17e9;
  x.matrix_efficiency = 0.7;
  x.kernel_s = 2e-6;
  x.devices_per_host = 1;
  x.host_bandwidth = 8e9;
  x.host_latency_s = 10e-6;
  x.network_bandwidth = x.hop_bandwidth = 1.1e9;
  x.launch_s = x.launch_tensor_s = x.launch_unfused_s = x.launch_ends_s = x.iteration_s = 0;
  return x;
}

caf::error refused(std::string_view document, size_t offset, const std::string& why) {
  return make_error(errc::invalid_argument, fmt::format("{}: {}", line_and_column(document, offset), why));
}

bool may_be_zero(std::string_view name) {
  return name.ends_with("_s") || name == "reserved_bytes" || name == "unhidden" || name == "logit_bytes"
         || name == "optimizer_bytes";
}

/// What is wrong with a member's value.
std::string problem_of(std::string_view name, double x) {
  if (!std::isfinite(x) || x < 0 || (x == 0 && !may_be_zero(name)))
    return fmt::format("{} is {}; it must be {}", name, x, may_be_zero(name) ? "0 or more" : "more than 0");
  if ((name.ends_with("_efficiency") || name == "unhidden") && x > 1)
    return fmt::format("{} is {}; it is a part, at most 1", name, x);
  if (name == "devices_per_host" && (x != std::floor(x) || x > 65536))
    return fmt::format("{} is {}; it must be a whole number, at most 65536", name, x);
  return {};
}

std::string names_of_systems() {
  std::string names;
  for (auto& x : known_systems())
    names += (names.empty() ? "" : ", ") + x.name;
  return names;
}

const gpu_system* known(std::string_view name) {
  auto all = known_systems();
  auto i = std::ranges::find(all, name, &gpu_system::name);
  return i == all.end() ? nullptr : &*i;
}

/// The object's members, but for "name" and "like".
caf::error read_members(std::string_view document, const json_value& object, gpu_system& x) {
  for (size_t i = 0; i < object.entries.size(); ++i) {
    auto& key = object.keys[i];
    auto& value = object.entries[i];
    if (key.name == "like" || key.name == "name")
      continue;
    auto all = system_constants();
    auto found = std::ranges::find(all, std::string_view{key.name}, &system_constant::name);
    if (found == all.end())
      return refused(document, key.offset, fmt::format("a system has no \"{}\"", key.name));
    if (value.what != json_value::type::number)
      return refused(document, value.offset, fmt::format("\"{}\" must be a number", key.name));
    if (auto problem = problem_of(key.name, value.number); !problem.empty())
      return refused(document, value.offset, problem);
    x.*found->member = value.number;
  }
  return caf::none;
}

} // namespace

std::span<const gpu_system> known_systems() {
  static const std::array all{a100(), a100_40g(), h100(), h200(), two_core_host()};
  return all;
}

std::span<const system_constant> system_constants() {
  using s = gpu_system;
  static const std::array<system_constant, 22> all{{
    {"peak_flops", &s::peak_flops},
    {"memory_bytes", &s::memory_bytes},
    {"reserved_bytes", &s::reserved_bytes},
    {"memory_bandwidth", &s::memory_bandwidth},
    {"matrix_efficiency", &s::matrix_efficiency},
    {"attention_efficiency", &s::attention_efficiency},
    {"kernel_s", &s::kernel_s},
    {"devices_per_host", &s::devices_per_host},
    {"host_bandwidth", &s::host_bandwidth},
    {"host_latency_s", &s::host_latency_s},
    {"network_bandwidth", &s::network_bandwidth},
    {"hop_bandwidth", &s::hop_bandwidth},
    {"hop_latency_s", &s::hop_latency_s},
    {"launch_s", &s::launch_s},
    {"launch_tensor_s", &s::launch_tensor_s},
    {"launch_unfused_s", &s::launch_unfused_s},
    {"launch_ends_s", &s::launch_ends_s},
    {"launch_scale", &s::launch_scale},
    {"unhidden", &s::unhidden},
    {"logit_bytes", &s::logit_bytes},
    {"optimizer_bytes", &s::optimizer_bytes},
    {"iteration_s", &s::iteration_s},
  }};
  return all;
}

caf::expected<gpu_system> parse_system(std::string_view document) {
  auto read = parse_json(document);
  if (!read)
    return std::move(read.error());
  if (read->what != json_value::type::object)
    return refused(document, read->offset, "a system is an object");
  gpu_system x;
  for (size_t i = 0; i < read->entries.size(); ++i) {
    auto& key = read->keys[i];
    auto& value = read->entries[i];
    if (key.name != "like" && key.name != "name")
      continue;
    if (value.what != json_value::type::text)
      return refused(document, value.offset, fmt::format("\"{}\" must be a text", key.name));
    if (key.name == "name")
      continue;
    auto* found = known(value.text);
    if (found == nullptr)
      return refused(document, value.offset,
                     fmt::format("there is no system \"{}\"; there are: {}", value.text, names_of_systems()));
    x = *found;
  }
  if (x.peak_flops == 0)
    return refused(document, read->offset, "\"like\" is missing: the known system whose other constants are taken");
  x.name = "own";
  for (size_t i = 0; i < read->entries.size(); ++i)
    if (read->keys[i].name == "name")
      x.name = read->entries[i].text;
  if (auto problem = read_members(document, *read, x))
    return problem;
  if (x.reserved_bytes >= x.memory_bytes)
    return refused(document, read->offset, "reserved_bytes must be less than memory_bytes");
  return x;
}

caf::expected<gpu_system> system_of(const std::string& name_or_file) {
  if (auto* found = known(name_or_file))
    return *found;
  std::error_code unreadable;
  std::ifstream in{name_or_file};
  if (!in || std::filesystem::is_directory(name_or_file, unreadable))
    return make_error(name_or_file.find_first_of("/.") == name_or_file.npos ? errc::invalid_argument : errc::io_error,
                      fmt::format("there is no system and no file \"{}\"; systems are: {}", name_or_file,
                                  names_of_systems()));
  auto x = parse_system(std::string{std::istreambuf_iterator<char>{in}, {}});
  if (!x)
    return make_error(errc::corrupt, fmt::format("{}: {}", name_or_file, render(x.error())));
  return x;
}

} // namespace ringmaster::training
