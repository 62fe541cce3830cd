#pragma once

#include "actors/hosts/process_trust.hpp"
#include "runtime/configuration/options.hpp"

#include <caf/actor_system_config.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Registers our messages with an actor system. The templates are large: they are instantiated here once.
void add_messages(caf::actor_system_config& cfg);

/// The configuration of a process: our options beside CAF's own. The command line goes before the file, the file
/// before the defaults. Loads our message types and the middleman.
///
///   configuration cfg;
///   if (auto err = cfg.read(argc, argv, find_configuration()))
///     return report(err);
///   if (cfg.cli_helptext_printed)
///     return EXIT_SUCCESS;
///   caf::actor_system system{cfg};
class configuration : public caf::actor_system_config, public trust_source {
public:
  configuration();
  configuration(configuration&&) = delete; // CAF holds pointers to the values

  /// Reads the command line (without the program's name) and the file. `--config-file=PATH` replaces
  /// `default_file` and must exist; `default_file` need not. What a launcher gives to all that it starts goes between:
  /// RINGMASTER_CONF in the environment replaces `default_file`, too, and RINGMASTER_OPTIONS has options, a line each,
  /// of which those on the command line go first. Options of ours and of CAF's, "--section.key=value", may stand
  /// anywhere before a "--"; all other arguments are left in `remainder`, in order. --help and --version print what
  /// they ask for, and set `cli_helptext_printed`: there is nothing else to do then. Errors: invalid_config with a
  /// sentence: a key that does not exist or is there twice, a value of the wrong type or out of range, text that is no
  /// INI; io_error where the file cannot be read.
  caf::error read(std::vector<std::string> args, const std::optional<std::filesystem::path>& default_file);
  caf::error read(int argc, char** argv, const std::optional<std::filesystem::path>& default_file);

  /// What `read` checks, for programs that use CAF's exec_main, which silently ignores unknown keys and values of the
  /// wrong type in a file: the file, if any, and the values in use.
  caf::error check(const std::optional<std::filesystem::path>& file) const;

  /// For a program that takes no arguments beside these. Errors: invalid_argument, naming the first in `remainder`;
  /// invalid_config where that looks like a key.
  caf::error check_remainder() const;

  const options& values() const noexcept { return values_; }
  trust_settings trust() const override;

  /// Who has set keys of the section, for people: "config/caf-application.conf", "the command line", both, or "the
  /// defaults".
  std::string origin_of(const std::string& section) const;

  /// What --help prints: every key of ours with its default, and the file that is read by default.
  std::string help_text(const std::string& program, const std::optional<std::filesystem::path>& default_file) const;

  /// The file that `read` has read; none if there was none.
  const std::optional<std::filesystem::path>& file() const noexcept { return file_; }

  /// CAF's values and ours; what --dump-config prints.
  caf::settings dump_content() const override;

private:
  static std::string place_of(const caf::error& err, const std::string& text);
  caf::error check_argument(const std::string& arg);
  caf::error check_text(const std::string& text, const std::string& name) const;
  caf::error check_value(const std::string& key, const caf::config_value* value, const std::string& name) const;
  caf::error with_origin(const caf::error& problem) const;
  bool is_ours_or_cafs(const std::string& arg) const;
  std::string keys_like(const std::string& key) const;
  std::string allowed_for(const caf::config_option& option) const;

  options values_;
  std::optional<std::filesystem::path> file_;
  std::vector<std::string> file_keys_;    ///< "section.key"
  std::vector<std::string> command_keys_; ///< The same, of the command line.
};

} // namespace ringmaster
