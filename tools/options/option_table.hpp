#pragma once

#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/options/option.hpp"

#include <caf/expected.hpp>

#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The options of a command: reads them, and describes them for help, man pages and shell completion. An option is
/// written "--name VALUE" or "--name=VALUE", a short one also "-nVALUE"; every table has --help, -h, --help-all and
/// --version. A target that is a std::optional says whether the option was given; any other target holds the default
/// when the option is added, and help shows it. Targets must outlive the table.
class option_table {
public:
  /// Options that belong together, under a title.
  struct group {
    std::string title;
    std::deque<option> options;
  };
  struct example {
    std::string line, purpose;
  };

  /// `command`: with the program's name, "ringmaster bench".
  explicit option_table(std::string command) : command_(std::move(command)), groups_(1) {}

  option& flag(const std::string& name, bool& target);
  option& value(const std::string& name, option::setter set);
  /// `parse` turns the text into a caf::expected of the target's type.
  template <class Target, class Parse>
  option& parsed(const std::string& name, Target& target, Parse parse) {
    return value(name, [&target, parse](const std::string& text) -> caf::error {
      auto x = parse(text);
      if (!x)
        return std::move(x.error());
      assign(target, *x);
      return caf::none;
    });
  }
  /// A text that is not empty.
  template <class Target>
  option& text(const std::string& name, Target& target) {
    return with_default(parsed(name, target, parse_text), target, [](auto& x) { return std::string{x}; });
  }
  template <class Target>
  option& file(const std::string& name, Target& target) {
    return text(name, target).offers_files();
  }
  /// One of the words.
  template <class Target>
  option& word(const std::string& name, Target& target, std::vector<std::string> words) {
    auto parse = [words](const std::string& text) { return parse_word(text, words); };
    return with_default(parsed(name, target, parse), target, [](auto& x) { return std::string{x}; })
      .offers(std::move(words));
  }
  /// Some of the words, separated by commas.
  option& words(const std::string& name, std::vector<std::string>& target, std::vector<std::string> words);
  template <class Target>
  option& number(const std::string& name, Target& target, uint64_t min, uint64_t max = UINT64_MAX) {
    auto parse = [min, max](const std::string& text) { return parse_whole(text, min, max); };
    return with_default(parsed(name, target, parse), target, [](auto x) { return std::to_string(x); }).says("N", "");
  }
  template <class Target>
  option& bytes(const std::string& name, Target& target, uint64_t max = UINT64_MAX, uint64_t min = 0) {
    auto parse = [max, min](const std::string& text) { return parse_bytes(text, max, min); };
    return with_default(parsed(name, target, parse), target, [](auto x) { return size_text(x); }).says("SIZE", "");
  }
  option& duration(const std::string& name, int64_t& target_ps);
  option& duration(const std::string& name, std::optional<int64_t>& target_ps);
  template <class Target>
  option& bandwidth(const std::string& name, Target& target) {
    return parsed(name, target, parse_bandwidth).says("B", "");
  }

  /// Positional arguments; `set` is called for each. `word` is their name in help: "KIND".
  option& positional(std::string word, option::setter set);
  /// One that was added before, to describe it in other words.
  option& positional();
  option& option_named(const std::string& name);
  /// All arguments from the first positional one on, or after "--", are for another program.
  option& rest(std::string word, std::vector<std::string>& target);
  /// The table collects arguments for the configuration, "--section.key=V". `keys`: all keys.
  void take_configuration(std::vector<std::string> keys);

  /// Options that are added from here on belong to this group.
  void begin_group(std::string title);
  /// Marks the options that --help shows, `common_max` at most. A table without marks shows all of its options.
  void common(std::initializer_list<const char*> names);
  /// The opposite: marks all options so far but these.
  void uncommon(std::initializer_list<std::string_view> names);
  static constexpr size_t common_max = 10;
  bool has_common() const noexcept { return has_common_; }
  /// The description above the options, and notes that --help-all adds to it: paragraphs, separated by empty lines.
  /// Lines that start with a blank are not filled.
  void about(std::string text) { about_ = std::move(text); }
  void closing(std::string text) { closing_ = std::move(text); }
  /// A usage line in place of the generated one: "KIND --ranks N [options]". May be called again.
  void form(std::string text) { forms_.push_back(std::move(text)); }
  void add_example(std::string line, std::string purpose);

  /// Stops at --help, --help-all and --version. Errors: invalid_argument, which names the option, the value and what is
  /// allowed; for a value that was read from a file, the code of that error.
  caf::error read(std::span<const std::string> args);
  bool help() const noexcept { return help_ || help_all_; }
  bool help_all() const noexcept { return help_all_; }
  bool version() const noexcept { return version_; }
  /// Adds an argument for the configuration: "--coordinator.port=7077".
  void configure_by(std::string argument) { for_configuration_.push_back(std::move(argument)); }
  const std::vector<std::string>& for_configuration() const noexcept { return for_configuration_; }

  const std::string& command() const noexcept { return command_; }
  const std::deque<group>& groups() const noexcept { return groups_; }
  const option* free() const noexcept { return positional_ ? &*positional_ : nullptr; }
  const std::string& about() const noexcept { return about_; }
  const std::string& closing() const noexcept { return closing_; }
  const std::vector<example>& examples() const noexcept { return examples_; }
  bool takes_configuration() const noexcept { return !configuration_keys_.empty(); }
  const std::vector<std::string>& configuration_keys() const noexcept { return configuration_keys_; }
  /// The usage lines without the command's name.
  std::vector<std::string> forms() const;

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
  template <class Target, class Text>
  static option& with_default(option& x, const Target& target, Text text) {
    return x.otherwise(text(target));
  }
  template <class Target, class Text>
  static option& with_default(option& x, const std::optional<Target>&, Text) {
    return x;
  }

  option& add(const std::string& name, option::setter set);
  option* find(const std::string& name);
  bool is_for_configuration(const std::string& name) const;
  caf::error read_option(std::span<const std::string> args, size_t& i);
  caf::error unknown(const std::string& name) const;
  std::string see_help() const { return "see " + command_ + " --help"; }

  std::string command_, about_, closing_;
  std::deque<group> groups_;
  std::optional<option> positional_;
  std::vector<std::string>* rest_ = nullptr;
  std::vector<std::string> forms_, configuration_keys_, for_configuration_;
  std::vector<example> examples_;
  bool help_ = false, help_all_ = false, version_ = false, has_common_ = false;
};

} // namespace ringmaster
