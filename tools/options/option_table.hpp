#pragma once

#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/options/option.hpp"

#include <caf/expected.hpp>

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// What a command takes: how it is read, and how help, a manual and a shell show it. An option is written "--name
/// VALUE" or "--name=VALUE", a short one also "-nVALUE"; --help, -h and --version are always there. A target may be a
/// std::optional, which then says whether the option was given; any other has its default when the option is added,
/// which help shows. Targets must outlive the table.
class option_table {
public:
  /// Options that belong together, and what is said of them all.
  struct group {
    std::string title;
    std::deque<option> options;
  };
  /// A command line, and what it does.
  struct example {
    std::string line, purpose;
  };

  /// `command` as one calls it: "ringmaster bench".
  explicit option_table(std::string command) : command_(std::move(command)), groups_(1) {}

  option& flag(const std::string& name, bool& target);
  option& value(const std::string& name, option::setter set);
  /// What `parse` makes of the value: a caf::expected of what the target takes.
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
  /// A text that is not empty: a name, for example.
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
  /// Some of the words, with commas between them.
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

  /// What stands without a dash; called for each of them. `word` is how help calls it: "KIND".
  option& positional(std::string word, option::setter set);
  /// What was added before, to say it in other words. It must be there.
  option& positional();
  option& option_named(const std::string& name);
  /// From the first argument without a dash on, or behind "--", all that is left is for another program.
  option& rest(std::string word, std::vector<std::string>& target);
  /// "--section.key=V", and what else a configuration reads, is put aside for it. `keys` are those there are.
  void take_configuration(std::vector<std::string> keys);

  /// What comes now belongs together.
  void begin_group(std::string title);
  /// What help says above the options and below them: paragraphs, which are filled; lines that begin with a blank stay
  /// as they are. An empty line divides them.
  void about(std::string text) { about_ = std::move(text); }
  void closing(std::string text) { closing_ = std::move(text); }
  /// In place of the first line that is made of the options: "KIND --ranks N [options]". May be called again.
  void form(std::string text) { forms_.push_back(std::move(text)); }
  void add_example(std::string line, std::string purpose);

  /// Stops at --help and at --version. Errors: invalid_argument, naming the option, the value and what is allowed;
  /// where a value was read from a file, its error's own code.
  caf::error read(std::span<const std::string> args);
  bool help() const noexcept { return help_; }
  bool version() const noexcept { return version_; }
  /// An argument for the configuration, as if it stood there: "--coordinator.port=7077".
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
  /// What may stand behind the command's name; a line each.
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
  bool help_ = false, version_ = false;
};

} // namespace ringmaster
