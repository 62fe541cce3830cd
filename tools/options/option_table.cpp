#include "tools/options/option_table.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ringmaster {

namespace {

/// "1.5us", with the largest unit that leaves a number from 1.
std::string duration_default(int64_t ps) {
  constexpr std::pair<const char*, double> units[] = {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}};
  for (auto [name, size] : units)
    if (static_cast<double>(ps) >= size)
      return fmt::format("{:g}{}", static_cast<double>(ps) / size, name);
  return "0";
}

} // namespace

caf::expected<std::string> option_table::parse_text(const std::string& text) {
  if (text.empty())
    return invalid("it is empty");
  return text;
}

caf::expected<std::string> option_table::parse_word(const std::string& text, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) != words.end())
    return text;
  auto meant = nearest_word(text, words);
  return invalid(fmt::format("\"{}\" is none of {}{}", text, fmt::join(words, ", "),
                             meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

option& option_table::add(const std::string& name, option::setter set) {
  option result;
  result.names_.push_back(name);
  result.set_ = std::move(set);
  if (find(name) != nullptr)
    throw std::logic_error{command_ + " has two options " + name};
  groups_.back().options.push_back(std::move(result));
  return groups_.back().options.back();
}

option& option_table::flag(const std::string& name, bool& target) {
  auto& result = add(name, [&target](const std::string&) -> caf::error {
    target = true;
    return caf::none;
  });
  result.flag_ = true;
  return result;
}

option& option_table::words(const std::string& name, std::vector<std::string>& target, std::vector<std::string> words) {
  auto parse = [words](const std::string& text) -> caf::expected<std::vector<std::string>> {
    std::vector<std::string> result;
    for (auto part : comma_list(text)) {
      TRY(word, parse_word(std::string{part}, words));
      result.push_back(std::move(*word));
    }
    return result;
  };
  return parsed(name, target, parse).offers(std::move(words));
}

option& option_table::value(const std::string& name, option::setter set) {
  return add(name, std::move(set));
}

option& option_table::duration(const std::string& name, int64_t& target_ps) {
  return parsed(name, target_ps, parse_duration_ps).says("T", "").otherwise(duration_default(target_ps));
}

option& option_table::duration(const std::string& name, std::optional<int64_t>& target_ps) {
  return parsed(name, target_ps, parse_duration_ps).says("T", "");
}

option& option_table::positional(std::string word, option::setter set) {
  positional_.emplace();
  positional_->value_word_ = std::move(word);
  positional_->set_ = std::move(set);
  return *positional_;
}

option& option_table::positional() {
  return positional_.value();
}

option& option_table::option_named(const std::string& name) {
  auto* known = find(name);
  if (known == nullptr) // a mistake in the program
    throw std::logic_error{command_ + " has no option " + name};
  return *known;
}

option& option_table::rest(std::string word, std::vector<std::string>& target) {
  rest_ = &target;
  return positional(std::move(word), {}).needed();
}

void option_table::add_example(std::string line, std::string purpose) {
  examples_.push_back({std::move(line), std::move(purpose)});
}

void option_table::take_configuration(std::vector<std::string> keys) {
  configuration_keys_ = std::move(keys);
}

void option_table::begin_group(std::string title) {
  groups_.push_back({std::move(title), {}});
}

void option_table::common(std::initializer_list<const char*> names) {
  if (names.size() > common_max)
    throw std::logic_error{command_ + " marks more options as common than --help shows"};
  has_common_ = true;
  for (const auto* name : names)
    option_named(name).common_ = true;
}

void option_table::uncommon(std::initializer_list<std::string_view> names) {
  has_common_ = true;
  for (auto& titled : groups_)
    for (auto& each : titled.options)
      each.common_ = std::ranges::find(names, each.name()) == names.end();
}

std::vector<std::string> option_table::forms() const {
  if (!forms_.empty())
    return forms_;
  std::vector<std::string> parts;
  if (positional_ && rest_ == nullptr)
    parts.push_back(positional_->usage());
  auto more = takes_configuration();
  for (auto& each : groups_)
    for (auto& x : each.options) {
      if (x.is_needed())
        parts.push_back(x.usage());
      more |= !x.is_needed();
    }
  if (more)
    parts.emplace_back("[options]");
  if (rest_ != nullptr)
    parts.push_back(fmt::format("[--] {}", positional_->usage()));
  return {fmt::format("{}", fmt::join(parts, " "))};
}

option* option_table::find(const std::string& name) {
  for (auto& each : groups_)
    for (auto& x : each.options)
      if (std::find(x.names_.begin(), x.names_.end(), name) != x.names_.end())
        return &x;
  return nullptr;
}

bool option_table::is_for_configuration(const std::string& name) const {
  return takes_configuration() && name.starts_with("--") && (name.find('.') != name.npos || name == "--dump-config");
}

caf::error option_table::unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (auto& each : groups_)
    for (auto& x : each.options)
      names.insert(names.end(), x.names_.begin(), x.names_.end());
  auto meant = nearest_word(name, names);
  return invalid(fmt::format("there is no option {}; {}{}", name,
                             meant.empty() ? "" : fmt::format("did you mean {}? Or ", meant), see_help()));
}

/// Reads the option at `i`. Where its value is the next argument, `i` becomes the index of that.
caf::error option_table::read_option(std::span<const std::string> args, size_t& i) {
  const auto& arg = args[i];
  auto equals = arg.find('=');
  auto joined = equals != arg.npos;
  auto name = arg.substr(0, equals);
  std::string value = joined ? arg.substr(equals + 1) : "";
  auto* known = find(name);
  if (known == nullptr && is_for_configuration(name)) {
    configure_by(arg);
    return caf::none;
  }
  if (auto* brief = find(arg.substr(0, 2)); known == nullptr && brief != nullptr && !brief->flag_) {
    known = brief; // -n8
    name = arg.substr(0, 2);
    value = arg.substr(2);
    joined = true;
  }
  if (known == nullptr)
    return unknown(name);
  if (known->flag_ && joined)
    return invalid(fmt::format("{} takes no value, and has \"{}\"", name, value));
  if (!known->flag_ && !joined && i + 1 == args.size())
    return invalid(fmt::format("{} needs a value; {}", name, see_help()));
  if (!known->flag_ && !joined)
    value = args[++i];
  if (std::exchange(known->given_, true) && !known->flag_ && !known->many_)
    return invalid(fmt::format("{} is given twice", known->name()));
  if (auto problem = known->set_(value))
    return make_error(code_of(problem) == errc::ok ? errc::invalid_argument : code_of(problem),
                      fmt::format("{}: {}", name, render(problem)));
  return caf::none;
}

caf::error option_table::read(std::span<const std::string> args) {
  for (auto& each : groups_)
    for (auto& x : each.options)
      x.given_ = false;
  std::vector<std::string> words;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto& arg = args[i];
    auto divides = arg == "--" && rest_ != nullptr;
    if (rest_ != nullptr && (divides || !arg.starts_with("-"))) {
      auto left = args.subspan(i + (divides ? 1 : 0));
      rest_->assign(left.begin(), left.end());
      return caf::none;
    }
    if (arg == "--help" || arg == "-h" || arg == "--help-all" || arg == "--version") {
      (arg == "--version" ? version_ : arg == "--help-all" ? help_all_ : help_) = true;
      return caf::none;
    }
    if (arg.starts_with("-")) {
      RETURN_ERROR(read_option(args, i));
      continue;
    }
    if (!positional_)
      return invalid(fmt::format("\"{}\" is no option; {}", arg, see_help()));
    RETURN_ERROR(positional_->set_(arg));
    const auto& word = positional_->value_word_;
    if (!positional_->many_ && words.size() == static_cast<size_t>(std::ranges::count(word, ' ')) + 1)
      return invalid(fmt::format("\"{}\" is one too many: {} {}, and {} is there already", arg, command_, word,
                                 fmt::join(words, " ")));
    words.push_back(arg);
  }
  return caf::none;
}

} // namespace ringmaster
