#include "runtime/training/transformer/systems/gpu_system.hpp"

#include "messages/errc.hpp"
#include "runtime/text/json_value.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/text_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

namespace ringmaster::training {

namespace {

caf::error refused(std::string_view document, size_t offset, const std::string& why) {
  return make_error(errc::invalid_argument, fmt::format("{}: {}", line_and_column(document, offset), why));
}

bool may_be_zero(std::string_view name) {
  return name.ends_with("_s") || name == "reserved_bytes" || name == "logit_bytes" || name == "optimizer_bytes"
         || name.starts_with("exposed_") || name.ends_with("8_flops") || name == "nvfp4_flops" || name == "watts"
         || name == "expert_rows" || name == "dispatch_traffic" || name == "expert_launches"
         || name.starts_with("unhidden") || name == "unfused_activation_bytes" || name == "devices_per_pod"
         || name == "pod_bandwidth";
}

/// What is wrong with a member's value.
std::string problem_of(std::string_view name, double x) {
  if (!std::isfinite(x) || x < 0 || (x == 0 && !may_be_zero(name)))
    return fmt::format("{} is {}; it must be {}", name, x, may_be_zero(name) ? "0 or more" : "more than 0");
  if ((name.ends_with("_efficiency") || name.starts_with("exposed_") || name.starts_with("unhidden")) && x > 1)
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

/// What members that end so are counted in, and how people write that.
struct member_unit {
  std::string_view ending, written;
  caf::expected<double> (*parse)(std::string_view text);
};

template <class Number>
caf::expected<double> scaled(caf::expected<Number> x, double factor) {
  if (!x)
    return std::move(x.error());
  return static_cast<double>(*x) * factor;
}

caf::expected<double> parse_seconds(std::string_view text) {
  return scaled(parse_duration_ps(text), 1e-12);
}

caf::expected<double> parse_memory(std::string_view text) {
  return scaled(parse_bytes(text), 1);
}

constexpr member_unit units[] = {
  {"_flops", "operations a second, or a text such as \"989 TFLOP/s\"", parse_operation_rate},
  {"_bandwidth", "bytes a second, or a text such as \"50GB/s\" or \"400Gbps\"", parse_bandwidth},
  {"memory_bytes", "bytes, or a text such as \"80GB\"", parse_memory},
  {"reserved_bytes", "bytes, or a text such as \"4GB\"", parse_memory},
  {"_s", "seconds, or a text such as \"30us\"", parse_seconds},
};

caf::expected<double> read_value(std::string_view document, const std::string& name, const json_value& value) {
  if (value.what == json_value::type::number)
    return value.number;
  auto unit = std::ranges::find_if(units, [&](auto& x) { return name.ends_with(x.ending); });
  if (unit == std::end(units))
    return refused(document, value.offset, fmt::format("\"{}\" must be a number", name));
  if (value.what != json_value::type::text)
    return refused(document, value.offset, fmt::format("\"{}\" must be a number of {}", name, unit->written));
  auto x = unit->parse(value.text);
  if (!x)
    return refused(document, value.offset, fmt::format("\"{}\": {}", name, render(x.error())));
  return x;
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
    auto number = read_value(document, key.name, value);
    if (!number)
      return std::move(number.error());
    if (auto problem = problem_of(key.name, *number); !problem.empty())
      return refused(document, value.offset, problem);
    x.*found->member = *number;
  }
  return caf::none;
}

} // namespace

double gpu_system::peak_of(number_format x) const {
  switch (x) {
    case number_format::fp8:
    case number_format::mxfp8: return fp8_flops;
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
  static const std::array<system_constant, 45> all{{
    {"peak_flops", &s::peak_flops},
    {"fp8_flops", &s::fp8_flops},
    {"nvfp4_flops", &s::nvfp4_flops},
    {"memory_bytes", &s::memory_bytes},
    {"reserved_bytes", &s::reserved_bytes},
    {"memory_bandwidth", &s::memory_bandwidth},
    {"host_link_bandwidth", &s::host_link_bandwidth},
    {"watts", &s::watts},
    {"devices_per_host", &s::devices_per_host},
    {"host_bandwidth", &s::host_bandwidth},
    {"host_latency_s", &s::host_latency_s},
    {"network_bandwidth", &s::network_bandwidth},
    {"hop_bandwidth", &s::hop_bandwidth},
    {"hop_latency_s", &s::hop_latency_s},
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
    {"launch_ends_s", &s::launch_ends_s},
    {"launch_scale", &s::launch_scale},
    {"unhidden", &s::unhidden},
    {"unhidden_experts", &s::unhidden_experts},
    {"exposed_tensor", &s::exposed_tensor},
    {"exposed_expert", &s::exposed_expert},
    {"dispatch_efficiency", &s::dispatch_efficiency},
    {"exposed_gradient", &s::exposed_gradient},
    {"exposed_hop", &s::exposed_hop},
    {"dispatch_traffic", &s::dispatch_traffic},
    {"element_traffic", &s::element_traffic},
    {"unfused_activation_bytes", &s::unfused_activation_bytes},
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
  std::error_code unknown;
  if (!std::filesystem::exists(name_or_file, unknown))
    return make_error(name_or_file.find_first_of("/.") == name_or_file.npos ? errc::invalid_argument : errc::io_error,
                      fmt::format("there is no system and no file \"{}\"; systems are: {}", name_or_file,
                                  names_of_systems()));
  auto text = read_text_file(name_or_file);
  if (!text)
    return std::move(text.error());
  auto x = parse_system(*text);
  if (!x)
    return make_error(errc::corrupt, fmt::format("{}: {}", name_or_file, render(x.error())));
  return x;
}

} // namespace ringmaster::training
