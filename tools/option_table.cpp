#include "tools/option_table.hpp"

#include "messages/errc.hpp"
#include "runtime/quantity_parse.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ringmaster {

namespace {

caf::error invalid(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

template <class Target, class Parse>
option_table::setter parsed_with(Target& target, Parse parse) {
  return [&target, parse](const std::string& text) -> caf::error {
    auto x = parse(text);
    if (!x)
      return std::move(x.error());
    target = *x;
    return caf::none;
  };
}

} // namespace

void option_table::flag(const std::string& name, bool& target) {
  flags_[name] = &target;
}

void option_table::value(const std::string& name, setter set) {
  values_[name] = std::move(set);
}

void option_table::text(const std::string& name, std::string& target) {
  value(name, [&target](const std::string& text) -> caf::error {
    target = text;
    return text.empty() ? invalid("it is empty") : caf::none;
  });
}

void option_table::number(const std::string& name, uint32_t& target, uint32_t min, uint32_t max) {
  value(name, [&target, min, max](const std::string& text) -> caf::error {
    uint32_t x = 0;
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (problem != std::errc{} || end != text.data() + text.size() || x < min || x > max)
      return invalid(fmt::format("\"{}\" is not an integer from {} to {}", text, min, max));
    target = x;
    return caf::none;
  });
}

void option_table::bytes(const std::string& name, uint64_t& target) {
  value(name, parsed_with(target, parse_bytes));
}

void option_table::duration(const std::string& name, int64_t& target_ps) {
  value(name, parsed_with(target_ps, parse_duration_ps));
}

void option_table::bandwidth(const std::string& name, double& target) {
  value(name, parsed_with(target, parse_bandwidth));
}

caf::error option_table::read(std::span<const std::string> args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const auto& arg = args[i];
    if (arg == "--help" || arg == "-h") {
      help_ = true;
      return caf::none;
    }
    if (!arg.starts_with("-")) {
      if (!positional_)
        return invalid(fmt::format("\"{}\" is no option; see ringmaster {} --help", arg, command_));
      if (auto problem = positional_(arg))
        return problem;
      continue;
    }
    auto equals = arg.find('=');
    auto name = arg.substr(0, equals);
    if (auto flag = flags_.find(arg); flag != flags_.end()) {
      *flag->second = true;
      continue;
    }
    auto found = values_.find(name);
    if (found == values_.end())
      return invalid(fmt::format("there is no option {}; see ringmaster {} --help", arg, command_));
    if (equals == std::string::npos && i + 1 == args.size())
      return invalid(fmt::format("{} needs a value; see ringmaster {} --help", name, command_));
    if (auto problem = found->second(equals != std::string::npos ? arg.substr(equals + 1) : args[++i]))
      return invalid(fmt::format("{}: {}", name, render(problem)));
  }
  return caf::none;
}

} // namespace ringmaster
