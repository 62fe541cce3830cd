#include "tools/options/option_table.hpp"

#include "messages/errc.hpp"
#include "tools/options/nearest_word.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

namespace {

caf::error invalid(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

} // namespace

caf::expected<std::string> option_table::parse_text(const std::string& text) {
  if (text.empty())
    return invalid("it is empty");
  return text;
}

caf::expected<std::string> option_table::parse_word(const std::string& text, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) == words.end())
    return invalid(fmt::format("\"{}\" is none of {}", text, fmt::join(words, ", ")));
  return text;
}

caf::error option_table::unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [known, ignored] : values_)
    names.push_back(known);
  for (const auto& [known, ignored] : flags_)
    names.push_back(known);
  auto meant = nearest_word(name, names);
  return invalid(fmt::format("there is no option {}; {}{}", name,
                             meant.empty() ? "" : fmt::format("did you mean {}? Or ", meant), see_help()));
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
        return invalid(fmt::format("\"{}\" is no option; {}", arg, see_help()));
      if (auto problem = positional_(arg))
        return problem;
      continue;
    }
    auto equals = arg.find('=');
    auto name = arg.substr(0, equals);
    if (auto flag = flags_.find(name); flag != flags_.end()) {
      if (equals != std::string::npos)
        return invalid(fmt::format("{} takes no value, and has \"{}\"", name, arg.substr(equals + 1)));
      *flag->second = true;
      continue;
    }
    auto found = values_.find(name);
    if (found == values_.end())
      return unknown(name);
    if (equals == std::string::npos && i + 1 == args.size())
      return invalid(fmt::format("{} needs a value; {}", name, see_help()));
    if (auto problem = found->second(equals != std::string::npos ? arg.substr(equals + 1) : args[++i]))
      return invalid(fmt::format("{}: {}", name, render(problem)));
  }
  return caf::none;
}

} // namespace ringmaster
