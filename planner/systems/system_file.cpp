// Systems from JSON files, each like a known one.
#include "messages/try.hpp"

#include "messages/errc.hpp"
#include "planner/systems/gpu_system.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/text_file.hpp"
#include "runtime/text/utf8.hpp"

#include <caf/expected.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>

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

/// The number of a member of a system's file; a text may have a unit. Errors: invalid_argument, with what is expected.
caf::expected<double> system_member_of(const std::string& name, const json_value& value) {
  if (value.is_number())
    return value.get<double>();
  auto& kind = kind_of(name);
  if (kind.parse == nullptr)
    return invalid(fmt::format("\"{}\" must be a number", name));
  if (!value.is_string())
    return invalid(fmt::format("\"{}\" must be a number of {}", name, kind.written));
  auto x = kind.parse(value.get_ref<const std::string&>());
  if (!x)
    return invalid(fmt::format("\"{}\": {}", name, render(x.error())));
  return x;
}

/// Whether a member can have this number. The limits are orders of magnitude beyond any hardware, and keep times
/// finite. Errors: invalid_argument, with the member, its number and what it must be.
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

std::string names_of_systems() {
  std::string names;
  for (auto& x : known_systems())
    names += (names.empty() ? "" : ", ") + x.name;
  return names;
}

/// Whether it is written as data sheets do, or as here.
bool begins_so(const std::string& whole, std::string_view part) {
  auto small = [](char x) { return static_cast<char>(std::tolower(static_cast<unsigned char>(x))); };
  return whole.size() >= part.size() && std::ranges::equal(whole.substr(0, part.size()), part, {}, small, small);
}

const gpu_system* known(std::string_view name) {
  auto all = known_systems();
  auto i = std::ranges::find_if(all, [=](auto& x) { return x.name.size() == name.size() && begins_so(x.name, name); });
  return i == all.end() ? nullptr : &*i;
}

std::vector<const gpu_system*> all_beginning_so(std::string_view name) {
  std::vector<const gpu_system*> result;
  for (auto& x : known_systems())
    if (!name.empty() && begins_so(x.name, name))
      result.push_back(&x);
  return result;
}

/// Where only one begins so.
const gpu_system* beginning_so(std::string_view name) {
  const auto all = all_beginning_so(name);
  return all.size() == 1 ? all.front() : nullptr;
}

/// Why a name is none: which there are, or between which it does not tell.
std::string unknown_system(std::string_view what, std::string_view name) {
  std::vector<std::string_view> several;
  for (auto* x : all_beginning_so(name))
    several.push_back(x->name);
  if (several.size() > 1)
    return fmt::format("\"{}\" is more than one system: say {}", name, fmt::join(several, " or "));
  return fmt::format("there is no {} \"{}\"; systems are: {}", what, name, names_of_systems());
}

/// What a data sheet says of a device, and what is reached of it, which a file may say instead.
struct sheet_member {
  std::string_view said, reached;
  double gpu_system::*said_member, gpu_system::*reached_member;
};

constexpr sheet_member sheet_members[] = {
  {"memory_peak_bandwidth", "memory_bandwidth", &gpu_system::memory_peak_bandwidth, &gpu_system::memory_bandwidth},
  {"link_per_device", "host_bandwidth", &gpu_system::link_per_device, &gpu_system::host_bandwidth},
  {"network_per_device", "network_bandwidth", &gpu_system::network_per_device, &gpu_system::network_bandwidth},
  {"network_per_device", "hop_bandwidth", &gpu_system::network_per_device, &gpu_system::hop_bandwidth},
};

class system_reader {
public:
  explicit system_reader(const json_value& object) : object_(object) {}

  caf::expected<gpu_system> read() {
    for (auto step : {&system_reader::read_names, &system_reader::read_members, &system_reader::reach_what_is_said,
                      &system_reader::check_reached, &system_reader::check_trays, &system_reader::check_pods})
      RETURN_ERROR((this->*step)());
    if (x_.reserved_bytes >= x_.memory_bytes)
      return invalid("reserved_bytes must be less than memory_bytes");
    return x_;
  }

private:
  /// "like" and "name".
  caf::error read_names() {
    std::string name = "own";
    for (const auto& [key, value] : object_.items()) {
      if (key != "like" && key != "name")
        continue;
      if (!value.is_string())
        return invalid(fmt::format("\"{}\" must be a text", key));
      if (has_control_characters(value.get_ref<const std::string&>()))
        return invalid(fmt::format("\"{}\" must be in one line, without control characters", key));
      const auto text = value.get<std::string>();
      if (key == "name")
        name = text;
      else if (like_ = known(text) ? known(text) : beginning_so(text); like_ == nullptr)
        return invalid(unknown_system("system", text));
    }
    if (like_ == nullptr)
      return invalid("\"like\" is missing: the known system whose other constants are taken");
    x_ = *like_;
    x_.name = std::move(name);
    if (x_.constants_of.empty())
      x_.constants_of = like_->name;
    return caf::none;
  }

  /// Which member it may have been.
  static std::string meant(const std::string& name) {
    std::vector<std::string> names{"like", "name"};
    for (auto& each : system_constants())
      names.emplace_back(each.name);
    const auto nearest = nearest_word(name, names);
    return nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest);
  }

  caf::error read_members() {
    for (const auto& [key, value] : object_.items()) {
      if (key == "like" || key == "name")
        continue;
      auto all = system_constants();
      auto found = std::ranges::find(all, std::string_view{key}, &system_constant::name);
      if (found == all.end())
        return invalid(fmt::format("a system has no \"{}\"{}", key, meant(key)));
      auto number = system_member_of(key, value);
      if (!number)
        return invalid(render(number.error()));
      if (auto problem = problem_of_member(key, *number))
        return invalid(render(problem));
      x_.*found->member = *number;
      if (key.starts_with("launch_expert"))
        x_.experts_of = {}; // the largest part of it is its own
    }
    return caf::none;
  }

  /// Reaches the same parts of the peaks as the known system. A domain has one card per device.
  caf::error reach_what_is_said() {
    for (auto& each : sheet_members) {
      const auto *said = given(each.said), *reached = given(each.reached);
      if (said != nullptr && reached != nullptr)
        return invalid(fmt::format(
          "\"{}\", a data sheet's, and \"{}\", what is reached of it, are two ways to say the same: say one", each.said,
          each.reached));
      const auto known_said = like_->*each.said_member;
      if (said != nullptr && known_said == 0)
        return invalid(fmt::format("{} has no such link, so \"{}\" cannot be scaled: say \"{}\"", like_->name,
                                   each.said, each.reached));
      if (said != nullptr)
        x_.*each.reached_member *= x_.*each.said_member / known_said;
    }
    if (given("network_bandwidth") == nullptr && given("devices_per_host") != nullptr)
      x_.network_bandwidth *= x_.devices_per_host / like_->devices_per_host;
    return caf::none;
  }

  /// Of a data sheet's bandwidth no more is reached than there is; sums that switches make count twice.
  caf::error check_reached() {
    constexpr double by_switches = 2;
    struct limit {
      std::string_view reached, said;
      double is, most;
    };
    for (auto& x : {limit{"memory_bandwidth", "memory_peak_bandwidth", x_.memory_bandwidth, x_.memory_peak_bandwidth},
                    limit{"host_bandwidth", "link_per_device", x_.host_bandwidth, by_switches * x_.link_per_device},
                    limit{"hop_bandwidth", "network_per_device", x_.hop_bandwidth, x_.network_per_device},
                    limit{"network_bandwidth", "network_per_device", x_.network_bandwidth,
                          by_switches * x_.network_per_device * x_.devices_per_host}})
      if (given(x.reached) != nullptr && x.most > 0 && x.is > x.most)
        return invalid(fmt::format(
          "{} is {:.4g} bytes a second; as {} has {} at most {:.4g} can be reached: say \"{}\" if yours is faster",
          x.reached, x.is, like_->name, x.said, x.most, x.said));
    return caf::none;
  }

  caf::error check_trays() {
    const auto* tray = given("devices_per_tray");
    if (x_.devices_per_tray == 0 || std::fmod(x_.devices_per_host, x_.devices_per_tray) == 0)
      return caf::none;
    return invalid(fmt::format("devices_per_tray is {}{}; a domain of {} devices has whole trays, or none (0)",
                               x_.devices_per_tray, tray != nullptr ? "" : fmt::format(", as {} has it", like_->name),
                               x_.devices_per_host));
  }

  caf::error check_pods() {
    if ((x_.devices_per_pod > 0) != (x_.pod_bandwidth > 0))
      return invalid(
        "pods are described by \"devices_per_pod\" and \"pod_bandwidth\", of a domain to other pods: say both");
    if (std::fmod(x_.devices_per_pod, x_.devices_per_host) != 0)
      return invalid(fmt::format("devices_per_pod is {}; a pod has whole domains, of {} devices", x_.devices_per_pod,
                                 x_.devices_per_host));
    return caf::none;
  }

  const json_value* given(std::string_view name) const {
    const auto at = object_.find(std::string{name});
    return at == object_.end() ? nullptr : &*at;
  }

  const json_value& object_;
  const gpu_system* like_ = nullptr;
  gpu_system x_;
};

} // namespace

caf::expected<gpu_system> parse_system(std::string_view document) {
  TRY(read, parse_json(document));
  if (!read->is_object())
    return invalid("a system is an object");
  return system_reader{*read}.read();
}

caf::expected<gpu_system> system_of(const std::string& name_or_file) {
  if (auto* found = known(name_or_file))
    return *found;
  std::error_code unknown;
  if (std::filesystem::exists(name_or_file, unknown))
    return parse_file(name_or_file, parse_system);
  if (auto* found = beginning_so(name_or_file))
    return *found;
  return make_error(name_or_file.find_first_of("/.") == name_or_file.npos ? errc::invalid_argument : errc::io_error,
                    unknown_system("system and no file", name_or_file));
}

} // namespace ringmaster::training
