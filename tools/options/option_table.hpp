#pragma once

#include "runtime/text/quantity_parse.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// What a command's options set. An option is written "--name VALUE" or "--name=VALUE"; --help and -h are always there.
/// A target may be a std::optional, which then says whether the option was given.
class option_table {
public:
  using setter = std::function<caf::error(const std::string& value)>;

  explicit option_table(std::string command) : command_(std::move(command)) {}

  void flag(const std::string& name, bool& target) { flags_[name] = &target; }
  void value(const std::string& name, setter set) { values_[name] = std::move(set); }
  /// What `parse` makes of the value: a caf::expected of what the target takes.
  template <class Target, class Parse>
  void parsed(const std::string& name, Target& target, Parse parse) {
    value(name, [&target, parse](const std::string& text) -> caf::error {
      auto x = parse(text);
      if (!x)
        return std::move(x.error());
      assign(target, *x);
      return caf::none;
    });
  }
  /// A text that is not empty: the name of a file, for example.
  template <class Target>
  void text(const std::string& name, Target& target) {
    parsed(name, target, parse_text);
  }
  /// One of the words.
  template <class Target>
  void word(const std::string& name, Target& target, std::vector<std::string> words) {
    parsed(name, target, [words = std::move(words)](const std::string& text) { return parse_word(text, words); });
  }
  template <class Target>
  void number(const std::string& name, Target& target, uint64_t min, uint64_t max = UINT64_MAX) {
    parsed(name, target, [min, max](const std::string& text) { return parse_whole(text, min, max); });
  }
  template <class Target>
  void bytes(const std::string& name, Target& target, uint64_t max = UINT64_MAX) {
    parsed(name, target, [max](const std::string& text) { return parse_bytes(text, max); });
  }
  void duration(const std::string& name, int64_t& target_ps) { parsed(name, target_ps, parse_duration_ps); }
  void bandwidth(const std::string& name, double& target) { parsed(name, target, parse_bandwidth); }
  /// What stands without a dash; called for each of them.
  void positional(setter set) { positional_ = std::move(set); }

  /// Errors: invalid_argument, naming the option, the value and what is allowed.
  caf::error read(std::span<const std::string> args);
  bool help() const noexcept { return help_; }

private:
  static caf::expected<std::string> parse_text(const std::string& text);
  static caf::expected<std::string> parse_word(const std::string& text, const std::vector<std::string>& words);

  template <class Target, class Value>
  static void assign(Target& target, const Value& x) {
    target = static_cast<Target>(x);
  }
  template <class Target, class Value>
  static void assign(std::optional<Target>& target, const Value& x) {
    target = static_cast<Target>(x);
  }

  caf::error unknown(const std::string& name) const;
  std::string see_help() const { return "see ringmaster " + command_ + " --help"; }

  std::string command_;
  std::map<std::string, setter> values_;
  std::map<std::string, bool*> flags_;
  setter positional_;
  bool help_ = false;
};

} // namespace ringmaster
