#pragma once

#include "tools/options/option_table.hpp"

#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// What a command returns to the shell.
enum exit_status : int {
  exit_ok = 0,
  exit_failed = 1, ///< A file is missing, a result is wrong, a device was lost.
  exit_usage = 2,  ///< The command line or the configuration is wrong.
};

/// Where a command writes.
struct console {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
};

/// One call of a command. Owns the targets of its options. An error is printed and finishes the call; its status is
/// `exit_usage` for invalid_argument and invalid_config, else `exit_failed`. An input file with a mistake is `corrupt`.
class command_call {
public:
  virtual ~command_call() = default;

  /// Adds the command's options and its description.
  virtual void declare(option_table& table) = 0;
  /// Applies the arguments for the configuration. False: there is nothing left to do.
  virtual caf::expected<bool> configure(const option_table&) { return true; }
  /// Checks the options together, before anything is done.
  virtual caf::error check() { return caf::none; }
  /// Returns the exit status.
  virtual caf::expected<int> run(const console& to) = 0;
};

/// A command: its name, its summary, and a factory of calls. A program is a table of commands.
///
///   tool_command draw_command() {
///     return tool_command::of<draw_call>("draw", "who sends what to whom in a collective, as text or as a picture");
///   }
struct tool_command {
  std::string name; ///< "draw", "simulate train"
  std::string summary;
  std::function<std::unique_ptr<command_call>()> make;
  std::vector<tool_command> below{};  ///< Subcommands, which are called by their last word.
  std::string program = "ringmaster"; ///< The program that has this command; empty: the command is a program itself.
  int failed_status = exit_failed;
  int usage_status = exit_usage;

  template <class Call>
  static tool_command of(std::string name, std::string summary, std::vector<tool_command> below = {}) {
    tool_command result;
    result.name = std::move(name);
    result.summary = std::move(summary);
    result.make = [] { return std::make_unique<Call>(); };
    result.below = std::move(below);
    return result;
  }

  /// "train"
  std::string last_word() const { return name.substr(name.rfind(' ') + 1); }
  /// "ringmaster simulate train"
  std::string full_name() const { return program.empty() ? name : program + " " + name; }
  /// The options of a call, for display only: the targets no longer exist.
  option_table table() const;
  /// Runs a call with the arguments after the name, or prints the help or the version. Output that cannot be written
  /// completely is an error.
  int run(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr) const;

private:
  int run_call(std::span<const std::string> args, std::FILE* out, std::FILE* err) const;
};

} // namespace ringmaster
