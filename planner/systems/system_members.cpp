#include "planner/systems/system_members.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ringmaster::training {

namespace {

bool may_be_zero(std::string_view name) {
  return name.ends_with("_s") || name == "reserved_bytes" || name == "logit_bytes" || name == "optimizer_bytes"
         || name.starts_with("exposed_") || name.ends_with("8_flops") || name == "nvfp4_flops" || name == "watts"
         || name == "expert_rows" || name == "dispatch_traffic" || name.ends_with("_launches")
         || name.starts_with("unhidden") || name == "unfused_activation_bytes" || name == "devices_per_pod"
         || name == "pod_bandwidth";
}

/// What members that end so are counted in, how people write that, and what they may be where they are not 0.
struct member_kind {
  std::string_view ending, written;
  caf::expected<double> (*parse)(std::string_view text);
  double least, most;
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

caf::expected<double> parse_watts(std::string_view text) {
  double x = 0;
  const auto* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, x);
  auto unit = std::string_view{at, end};
  unit.remove_prefix(unit.starts_with(' '));
  if (problem != std::errc{} || (unit != "W" && unit != "kW"))
    return invalid(fmt::format("\"{}\" is no power such as 700W or 1.4kW", text));
  return unit == "W" ? x : 1000 * x;
}

constexpr std::string_view bandwidth = "bytes a second, or a text such as \"50GB/s\" or \"400Gbps\"";

constexpr member_kind kinds[] = {
  {"_flops", "operations a second, or a text such as \"989 TFLOP/s\"", parse_operation_rate, 1e6, 3e17},
  {"_bandwidth", bandwidth, parse_bandwidth, 1e3, 1e14},
  {"k_per_device", bandwidth, parse_bandwidth, 1e3, 1e13},
  {"memory_bytes", "bytes, or a text such as \"80GB\"", parse_memory, 1e6, 5e13},
  {"reserved_bytes", "bytes, or a text such as \"4GB\"", parse_memory, 1, 1e15},
  {"_s", "seconds, or a text such as \"30us\"", parse_seconds, 1e-12, 1},
  {"watts", "watts, or a text such as \"700W\"", parse_watts, 1, 1e5},
  {"_efficiency", "", nullptr, 1e-4, 1},
  {"", "", nullptr, 1e-6, 1e6},
};

const member_kind& kind_of(std::string_view name) {
  return *std::ranges::find_if(kinds, [&](auto& x) { return name.ends_with(x.ending); });
}

} // namespace

caf::expected<double> system_member_of(const std::string& name, const json_value& value) {
  if (value.is_number())
    return value.get<double>();
  auto& kind = kind_of(name);
  if (kind.parse == nullptr)
    return make_error(errc::invalid_argument, fmt::format("\"{}\" must be a number", name));
  if (!value.is_string())
    return make_error(errc::invalid_argument, fmt::format("\"{}\" must be a number of {}", name, kind.written));
  auto x = kind.parse(value.get_ref<const std::string&>());
  if (!x)
    return make_error(errc::invalid_argument, fmt::format("\"{}\": {}", name, render(x.error())));
  return x;
}

caf::error problem_of_member(std::string_view name, double x) {
  if (!std::isfinite(x) || x < 0 || (x == 0 && !may_be_zero(name)))
    return invalid(fmt::format("{} is {}; it must be {}", name, x, may_be_zero(name) ? "0 or more" : "more than 0"));
  if ((name.ends_with("_efficiency") || name.starts_with("exposed_") || name.starts_with("unhidden")) && x > 1)
    return invalid(fmt::format("{} is {}; it is a part, at most 1", name, x));
  if (name.starts_with("devices_per_") && (x != std::floor(x) || x > 65536))
    return invalid(fmt::format("{} is {}; it must be a whole number, at most 65536", name, x));
  auto& kind = kind_of(name);
  if (x != 0 && (x < kind.least || x > kind.most))
    return invalid(fmt::format("{} is {}, which nothing has; it must be from {} to {}", name, x, kind.least,
                               kind.most));
  return caf::none;
}

} // namespace ringmaster::training
