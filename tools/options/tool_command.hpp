#pragma once

#include "tools/options/option_table.hpp"

#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// What a command returns to the shell. One meaning everywhere.
enum exit_status : int {
  exit_ok = 0,
  exit_failed = 1, ///< A file is not there, a result is wrong, a device was lost.
  exit_usage = 2,  ///< The command line, or the configuration, says what cannot be.
};

/// Where a command writes.
struct console {
  std::FILE* out = stdout;
  std::FILE* err = stderr;
};

/// One call of a command, from its arguments to its end. Owns what its options set. An error ends it and is printed;
/// the status is `exit_usage` where the error is invalid_argument or invalid_config, else `exit_failed`: what is wrong
/// with a file that was read is corrupt.
class command_call {
public:
  virtual ~command_call() = default;

  /// Adds all that the command takes, and what is said of it.
  virtual void declare(option_table& table) = 0;
  /// Takes over what stood there for the configuration. False: that was all, there is nothing left to do.
  virtual caf::expected<bool> configure(const option_table&) { return true; }
  /// Whether the options go together; asked before anything is done.
  virtual caf::error check() { return caf::none; }
  /// Does it. Returns the exit status.
  virtual caf::expected<int> run(const console& to) = 0;
};

/// A command: its name, what it is, and how a call of it is made. A program is a table of them.
///
///   tool_command draw_command() {
///     return tool_command::of<draw_call>("draw", "who sends what to whom in a collective, as text or as a picture");
///   }
struct tool_command {
  std::string name; ///< "draw", "simulate train"
  std::string summary;
  std::function<std::unique_ptr<command_call>()> make;
  std::vector<tool_command> below{};  ///< Those whose last word may follow the name.
  std::string program = "ringmaster"; ///< Whose command it is; empty: it is a program itself.
  int failed_status = exit_failed;
  int usage_status = exit_usage;

  template <class Call>
  static tool_command of(std::string name, std::string summary, std::vector<tool_command> below = {}) {
    return {.name = std::move(name),
            .summary = std::move(summary),
            .make = [] { return std::make_unique<Call>(); },
            .below = std::move(below)};
  }

  /// "train"
  std::string last_word() const { return name.substr(name.rfind(' ') + 1); }
  /// "ringmaster simulate train"
  std::string full_name() const { return program.empty() ? name : program + " " + name; }
  /// What a call takes; for showing only, since its targets are gone.
  option_table table() const;
  /// Reads the arguments, which are those behind the name, and does it; or prints the help or the version. Output that
  /// could not be written whole is an error.
  int run(std::span<const std::string> args, std::FILE* out = stdout, std::FILE* err = stderr) const;

private:
  int run_call(std::span<const std::string> args, std::FILE* out, std::FILE* err) const;
};

} // namespace ringmaster
