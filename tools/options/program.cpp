#include "tools/options/program.hpp"

#include "messages/errc.hpp"
#include "runtime/text/nearest_word.hpp"
#include "runtime/text/version_text.hpp"
#include "tools/options/bash_completion.hpp"
#include "tools/options/help_text.hpp"
#include "tools/options/man_page.hpp"

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

/// One of the commands that every program has: it prints a text about the program.
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
  }
  caf::expected<int> run(const console& to) override {
    auto text = of_.help_of(command_);
    return text ? show(to, *text) : std::move(text.error());
  }

  std::vector<std::string> command_;
};

class completion_call final : public own_call {
public:
  using own_call::own_call;

private:
  void declare(option_table& table) override {
    auto set = [this](const std::string& text) -> caf::error {
      if (text != "bash")
        return make_error(errc::invalid_argument, fmt::format("\"{}\": there is a script for bash only", text));
      given_ = true;
      return caf::none;
    };
    table.positional("bash", set).says("the shell").offers({"bash"}).needed();
  }
  caf::error check() override {
    return given_ ? caf::error{}
                  : make_error(errc::invalid_argument, "for which shell? completion bash is what there is");
  }
  caf::expected<int> run(const console& to) override { return show(to, bash_completion(of_)); }

  bool given_ = false;
};

class man_call final : public own_call {
public:
  using own_call::own_call;

private:
  void declare(option_table&) override {}
  caf::expected<int> run(const console& to) override { return show(to, man_page(of_)); }
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

std::string program::help() const {
  const auto own = own_commands();
  auto width = std::max(width_of(commands_), width_of(own));
  auto text = fmt::format("usage: {} COMMAND [options]\n\n{}", name_, about_.empty() ? "" : filled(about_) + "\n");
  for (auto* each : {&commands_, &own})
    for (auto& x : *each)
      text += listed(x.name, x.summary, width);
  return closing_.empty() ? text : fmt::format("{}\n{}", text, filled(closing_));
}

std::vector<tool_command> program::own_commands() const {
  std::vector<tool_command> own{
    {.name = "help",
     .summary = "this text; help COMMAND says what a command takes, as COMMAND --help does",
     .make = [this] { return std::make_unique<help_call>(*this); }},
    {.name = "completion",
     .summary = fmt::format("a script that lets bash complete all this: source <({} completion bash)", name_),
     .make = [this] { return std::make_unique<completion_call>(*this); }},
    {.name = "man",
     .summary = fmt::format("the manual page: {} man | man -l -", name_),
     .make = [this] { return std::make_unique<man_call>(*this); }},
    {.name = "version",
     .summary = "which versions these are, as --version",
     .make = [this] { return std::make_unique<version_call>(*this); }},
  };
  name_program(own, name_);
  return own;
}

caf::expected<std::string> program::help_of(std::vector<std::string> command) const {
  if (command.empty())
    return help();
  const auto own = own_commands();
  for (auto* each : {&commands_, &own})
    for (auto x = each->begin(); x != each->end(); ++x)
      if (x->name == command.front()) {
        const auto* found = &*x;
        for (size_t i = 1; i < command.size(); ++i) {
          auto inner = std::find_if(found->below.begin(), found->below.end(),
                                    [&](auto& y) { return y.last_word() == command[i]; });
          if (inner == found->below.end())
            return make_error(errc::invalid_argument,
                              fmt::format("{} has no command \"{}\" below it", found->full_name(), command[i]));
          found = &*inner;
        }
        return help_text(found->table(), found->below);
      }
  return unknown(command.front());
}

caf::error program::unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (auto& x : commands_)
    names.push_back(x.name);
  for (auto& x : own_commands())
    names.push_back(x.name);
  auto meant = nearest_word(name, names);
  return make_error(errc::invalid_argument,
                    fmt::format("there is no command \"{}\"; {}`{} help` lists those there are", name,
                                meant.empty() ? "" : fmt::format("did you mean {}? ", meant), name_));
}

int program::run(std::vector<std::string> args, std::FILE* out, std::FILE* err) const {
  if (args.empty()) {
    auto status = own_commands().front().run({}, out, err);
    return status == exit_ok ? exit_usage : status;
  }
  auto name = args.front();
  args.erase(args.begin());
  if (name == "--help" || name == "-h" || name == "--version")
    name = name == "--version" ? "version" : "help";
  const auto own = own_commands();
  for (auto* each : {&commands_, &own})
    for (auto& x : *each)
      if (x.name == name)
        return x.run(args, out, err);
  fmt::print(err, "{}: {}\n", name_, render(unknown(name)));
  return exit_usage;
}

} // namespace ringmaster
