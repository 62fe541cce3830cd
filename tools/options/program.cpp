#include "tools/options/program.hpp"

#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/version_text.hpp"
#include "tools/options/bash_completion.hpp"

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

/// One of the commands that every program has. It prints a text about the program.
class own_call : public command_call {
public:
  explicit own_call(const program& of) : of_(of) {}

protected:
  static caf::expected<int> show(const console& to, const std::string& text) {
    fmt::print(to.out, "{}", text);
    return exit_ok;
  }

  const program& of_;
};

class help_call final : public own_call {
public:
  using own_call::own_call;

private:
  void declare(option_table& table) override {
    table.positional("COMMAND", [this](const std::string& text) { return command_.push_back(text), caf::error{}; })
      .says("one of the program's commands; without it, they are listed")
      .many();
    table.flag("--all", all_).says("shows all options, as COMMAND --help-all does");
  }
  caf::expected<int> run(const console& to) override {
    auto text = of_.help_of(command_, all_ ? help_extent::all : help_extent::common);
    return text ? show(to, *text) : std::move(text.error());
  }

  std::vector<std::string> command_;
  bool all_ = false;
};

class completion_call final : public own_call {
public:
  using own_call::own_call;

private:
  void declare(option_table& table) override {
    auto set = [this](const std::string& text) -> caf::error {
      if (text != "bash")
        return invalid(fmt::format("\"{}\": there is a script for bash only", text));
      given_ = true;
      return caf::none;
    };
    table.positional("bash", set).says("the shell").offers({"bash"}).needed();
  }
  caf::error check() override { return given_ ? caf::error{} : invalid("name the shell: completion bash"); }
  caf::expected<int> run(const console& to) override { return show(to, bash_completion(of_)); }

  bool given_ = false;
};

class version_call final : public own_call {
public:
  using own_call::own_call;

private:
  void declare(option_table&) override {}
  caf::expected<int> run(const console& to) override { return show(to, of_.version()); }
};

} // namespace

program::program(std::string name, std::string about, std::vector<tool_command> commands, std::string closing,
                 std::string (*note)())
  : name_(std::move(name)), about_(std::move(about)), closing_(std::move(closing)), commands_(std::move(commands)),
    note_(note) {
  name_program(commands_, name_);
}

std::string program::version() const {
  return version_text(name_) + (note_ != nullptr ? note_() : "");
}

std::string program::help(help_extent extent) const {
  const auto own = own_commands();
  std::vector<tool_command> listed_commands;
  for (auto* each : {&commands_, &own})
    for (auto& x : *each) {
      listed_commands.push_back(x);
      if (extent == help_extent::all)
        listed_commands.insert(listed_commands.end(), x.below.begin(), x.below.end());
    }
  auto text = fmt::format("Usage: {} COMMAND [options]\n\n{}\nCommands:\n", name_, filled(about_));
  for (auto& x : listed_commands)
    text += listed(x.name, x.summary, width_of(listed_commands));
  return text + "\n" + filled(closing_)
         + filled(fmt::format("{} COMMAND --help shows the options that are used most, --help-all all of them.",
                              name_));
}

std::vector<tool_command> program::own_commands() const {
  std::vector<tool_command> own{
    {.name = "help",
     .summary = "this list; help COMMAND shows what COMMAND --help shows",
     .make = [this] { return std::make_unique<help_call>(*this); }},
    {.name = "completion",
     .summary = fmt::format("prints a script that lets bash complete commands: source <({} completion bash)", name_),
     .make = [this] { return std::make_unique<completion_call>(*this); }},
    {.name = "version",
     .summary = "shows the versions, as --version",
     .make = [this] { return std::make_unique<version_call>(*this); }},
  };
  name_program(own, name_);
  return own;
}

const tool_command* program::find(const std::vector<tool_command>& own, const std::string& name) const {
  for (auto* each : {&commands_, &own})
    for (auto& x : *each)
      if (x.name == name)
        return &x;
  return nullptr;
}

caf::expected<std::string> program::help_of(const std::vector<std::string>& command, help_extent extent) const {
  if (command.empty())
    return help(extent);
  const auto own = own_commands();
  const auto* found = find(own, command.front());
  if (found == nullptr)
    return unknown(command.front());
  for (size_t i = 1; i < command.size(); ++i) {
    auto inner = std::ranges::find(found->below, command[i], &tool_command::last_word);
    if (inner == found->below.end())
      return invalid(fmt::format("{} has no command \"{}\"", found->full_name(), command[i]));
    found = &*inner;
  }
  return help_text(found->table(), found->below, extent);
}

caf::error program::unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (auto& x : commands_)
    names.push_back(x.name);
  for (auto& x : own_commands())
    names.push_back(x.name);
  auto meant = nearest_word(name, names);
  return invalid(fmt::format("there is no command \"{}\"; {}`{} help` lists all commands", name,
                             meant.empty() ? "" : fmt::format("did you mean {}? ", meant), name_));
}

int program::run(std::vector<std::string> args, std::FILE* out, std::FILE* err) const {
  const auto is_missing = args.empty();
  if (is_missing)
    args = {"help"};
  if (args.front() == "--help-all")
    args.insert(args.begin() + 1, "--all");
  const auto& name = args.front();
  const auto own = own_commands();
  const auto* command = find(own, name == "--version"                                        ? "version"
                                  : name == "--help" || name == "-h" || name == "--help-all" ? "help"
                                                                                             : name);
  if (command == nullptr) {
    fmt::print(err, "{}: {}\n", name_, render(unknown(name)));
    return exit_usage;
  }
  const auto status = command->run(std::span{args}.subspan(1), out, err);
  return is_missing && status == exit_ok ? exit_usage : status;
}

} // namespace ringmaster
