#include "tools/options/program.hpp"

#include "runtime/text/version_text.hpp"
#include "tools/options/bash_completion.hpp"
#include "tools/options/help_text.hpp"
#include "tools/options/man_page.hpp"
#include "tools/options/nearest_word.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

void name_program(std::vector<tool_command>& commands, const std::string& program) {
  for (auto& x : commands) {
    x.program = program;
    name_program(x.below, program);
  }
}

} // namespace

program::program(std::string name, std::string about, std::vector<tool_command> commands, std::string closing,
                 std::string (*note)())
  : name_(std::move(name)), about_(std::move(about)), closing_(std::move(closing)), commands_(std::move(commands)),
    note_(note) {
  name_program(commands_, name_);
}

std::string program::help() const {
  auto text = fmt::format("usage: {} COMMAND [options]\n\n{}{}", name_, about_.empty() ? "" : filled(about_) + "\n",
                          list_of(commands_));
  text += listed("help", "this text; help COMMAND says what a command takes, as COMMAND --help does",
                 width_of(commands_));
  return closing_.empty() ? text : fmt::format("{}\n{}", text, filled(closing_));
}

const tool_command* program::find(const std::string& name) const {
  auto found = std::find_if(commands_.begin(), commands_.end(), [&](auto& x) { return x.name == name; });
  return found == commands_.end() ? nullptr : &*found;
}

int program::unknown(const std::string& name, std::FILE* err) const {
  std::vector<std::string> names;
  for (auto& x : commands_)
    names.push_back(x.name);
  auto meant = nearest_word(name, names);
  fmt::print(err, "{}: there is no command \"{}\"; {}`{} help` lists those there are\n", name_, name,
             meant.empty() ? "" : fmt::format("did you mean {}? ", meant), name_);
  return exit_usage;
}

int program::run_help(std::span<const std::string> about, std::FILE* out, std::FILE* err) const {
  if (about.empty()) {
    fmt::print(out, "{}", help());
    return exit_ok;
  }
  auto* known = find(about.front());
  if (known == nullptr)
    return unknown(about.front(), err);
  std::vector<std::string> args(about.begin() + 1, about.end());
  args.push_back("--help");
  return known->run(args, out, err);
}

int program::run(std::vector<std::string> args, std::FILE* out, std::FILE* err) const {
  if (args.empty()) {
    fmt::print(out, "{}", help());
    return exit_usage;
  }
  auto name = args.front();
  args.erase(args.begin());
  if (name == "help" || name == "--help" || name == "-h")
    return run_help(args, out, err);
  if (name == "--version" || name == "version") {
    fmt::print(out, "{}{}", version_text(name_), note_ != nullptr ? note_() : "");
    return exit_ok;
  }
  if (name == "man") {
    fmt::print(out, "{}", man_page(*this));
    return exit_ok;
  }
  if (name == "completion" && args == std::vector<std::string>{"bash"}) {
    fmt::print(out, "{}", bash_completion(*this));
    return exit_ok;
  }
  auto* known = find(name);
  return known != nullptr ? known->run(args, out, err) : unknown(name, err);
}

} // namespace ringmaster
