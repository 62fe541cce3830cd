#pragma once

#include "tools/options/help_text.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// A program that consists of commands.
class program {
public:
  /// The help has `about` above the list of commands and `closing` below it. `note`: the last line of --version.
  program(std::string name, std::string about, std::vector<tool_command> commands, std::string closing,
          std::string (*note)() = nullptr);

  const std::string& name() const noexcept { return name_; }
  const std::vector<tool_command>& commands() const noexcept { return commands_; }
  /// help, completion and version, which every program has. They refer to this program.
  std::vector<tool_command> own_commands() const;
  /// The list of commands; with `all` subcommands, too.
  std::string help(help_extent extent) const;
  /// The help of a command, which may be one of several words; without words, the program's. Errors: invalid_argument
  /// for an unknown command.
  caf::expected<std::string> help_of(const std::vector<std::string>& command, help_extent extent) const;
  std::string version() const;

  /// Runs the command that the first argument names. Returns the exit status.
  int run(std::vector<std::string> args, std::FILE* out = stdout, std::FILE* err = stderr) const;

private:
  const tool_command* find(const std::vector<tool_command>& own, const std::string& name) const;
  caf::error unknown(const std::string& name) const;

  std::string name_, about_, closing_;
  std::vector<tool_command> commands_;
  std::string (*note_)();
};

} // namespace ringmaster
