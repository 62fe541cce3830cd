#pragma once

#include "tools/options/tool_command.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// A program of several commands.
class program {
public:
  /// `about` stands above the list of commands in the help, `closing` below it. `note` is a line that --version has in
  /// the end; none: it has none.
  program(std::string name, std::string about, std::vector<tool_command> commands, std::string closing,
          std::string (*note)() = nullptr);

  const std::string& name() const noexcept { return name_; }
  const std::string& about() const noexcept { return about_; }
  const std::string& closing() const noexcept { return closing_; }
  const std::vector<tool_command>& commands() const noexcept { return commands_; }
  /// help, completion, man and version, which every program has; they must not outlive it.
  std::vector<tool_command> own_commands() const;
  std::string help() const;
  /// Of a command, and words below it; the program's own help where there are none. Errors: invalid_argument for one
  /// that there is not.
  caf::expected<std::string> help_of(std::vector<std::string> command) const;
  std::string version() const;

  /// Finds the command and hands it its arguments; --help and --version are those commands, too. Returns the exit
  /// status.
  int run(std::vector<std::string> args, std::FILE* out = stdout, std::FILE* err = stderr) const;

private:
  caf::error unknown(const std::string& name) const;

  std::string name_, about_, closing_;
  std::vector<tool_command> commands_;
  std::string (*note_)();
};

} // namespace ringmaster
