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
  std::string help() const;

  /// Finds the command and hands it its arguments. `help`, `help NAME`, --help and --version are always there; and
  /// `completion bash` and `man`, which the help does not list. Returns the exit status.
  int run(std::vector<std::string> args, std::FILE* out = stdout, std::FILE* err = stderr) const;

private:
  int run_help(std::span<const std::string> about, std::FILE* out, std::FILE* err) const;
  const tool_command* find(const std::string& name) const;
  int unknown(const std::string& name, std::FILE* err) const;

  std::string name_, about_, closing_;
  std::vector<tool_command> commands_;
  std::string (*note_)();
};

} // namespace ringmaster
