#include "tools/options/tool_command.hpp"

#include "messages/errc.hpp"
#include "messages/version.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"
#include "tests/tools/console/set_columns.hpp"
#include "tools/options/help_text.hpp"
#include "tools/options/program.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// A command as a newcomer writes one.
class paint_call final : public command_call {
  void declare(option_table& table) override {
    table.about(
      "Paints a wall. This paragraph is long enough that it has to be divided into two lines, since help has no "
      "more than 100 columns.\n\n  this line stays   as it is");
    table.positional("WALL", [this](const std::string& text) { return walls_.push_back(text), caf::error{}; })
      .says("which one")
      .needed()
      .many();
    table.word("--colour", colour_, {"red", "green", "blue"}).also("-c").says("C", "{words}");
    table.number("--coats", coats_, 1, 9).says("how many");
    table.begin_group("The brush.");
    table.bytes("--size-of-a-very-large-brush", brush_).says("SIZE", "of bristles");
    table.flag("--dry", dry_).says("only looks");
    table.closing("Mind the carpet.");
    table.common({"--colour", "--dry"});
    table.add_example("house paint north --colour green", "a green wall");
  }
  caf::error check() override {
    return walls_.empty() ? make_error(errc::invalid_argument, "which wall?") : caf::error{};
  }
  caf::expected<int> run(const console& to) override {
    if (walls_[0] == "gone")
      return make_error(errc::io_error, "there is no wall");
    fmt::print(to.out, "{} {} times, {}\n", colour_, coats_, brush_);
    return walls_[0] == "crooked" ? exit_failed : exit_ok;
  }

  std::vector<std::string> walls_;
  std::string colour_ = "red";
  uint32_t coats_ = 2;
  uint64_t brush_ = 64 << 10;
  bool dry_ = false;
};

tool_command paint() {
  auto result = tool_command::of<paint_call>("paint", "paints walls");
  result.program = "house";
  return result;
}

program house() {
  return {"house", "keeps a house", {paint(), tool_command::of<paint_call>("sweep", "sweeps floors")}, "Be careful."};
}

outcome in_house(const std::vector<std::string>& args) {
  return captured([&](auto out, auto err) { return house().run(args, out, err); });
}

} // namespace

TEST_CASE("tool command: its options are set, and its status is what it returns") {
  auto painted = run_command(paint(), {"north", "-cgreen", "--coats=3"});
  CHECK(painted.out == "green 3 times, 65536\n");
  CHECK(painted.err == "");
  CHECK(painted.code == 0);
  CHECK(run_command(paint(), {"crooked"}).code == 1);
}

TEST_CASE("tool command: an error is a sentence behind the command's name; usage is 2, all else 1") {
  auto usage = run_command(paint(), {"--coats", "3"});
  CHECK(usage.err == "house paint: which wall?\n");
  CHECK(usage.code == 2);
  CHECK(run_command(paint(), {"north", "--coats", "10"}).code == 2);
  auto failed = run_command(paint(), {"gone"});
  CHECK(failed.err == "house paint: there is no wall\n");
  CHECK(failed.out == "");
  CHECK(failed.code == 1);
}

TEST_CASE("tool command: help is made of the table, with defaults and within 100 columns") {
  const auto head = R"(Usage: house paint WALL... [options]

Paints a wall. This paragraph is long enough that it has to be divided into two lines, since help
has no more than 100 columns.

  this line stays   as it is
)";
  CHECK(run_command(paint(), {"--help"}).out == head + std::string{R"(
Options:
  WALL...           which one
  -c, --colour C    red, green or blue (red)
  --dry             only looks
  -h, --help        shows the options that are used most

Examples:
  house paint north --colour green   a green wall

house paint --help-all shows all options.
)"});
  CHECK(run_command(paint(), {"--help-all"}).out == head + std::string{R"(
Mind the carpet.

Options:
  WALL...           which one
  -c, --colour C    red, green or blue (red)
  --coats N         how many (2)

The brush.
  --size-of-a-very-large-brush SIZE
                    of bristles (64K)
  --dry             only looks
  -h, --help        shows the options that are used most
  --help-all        shows all options
  --version         shows the versions

Examples:
  house paint north --colour green   a green wall
)"});
}

TEST_CASE("tool command: help is as narrow as the terminal") {
  const set_columns narrow{"60"};
  for (auto* option : {"--help", "--help-all"}) {
    std::istringstream lines{run_command(paint(), {option}).out};
    for (std::string line; std::getline(lines, line);)
      CHECK_MESSAGE(line.size() <= 60, line);
  }
}

TEST_CASE("help text: a table without common options shows all, and so does one that marks none of its group") {
  option_table table{"house sweep"};
  bool wet = false;
  table.flag("--wet", wet).says("with water");
  CHECK(contains(help_text(table, {}, help_extent::common), "--wet"));
  table.common({});
  CHECK(!contains(help_text(table, {}, help_extent::common), "--wet"));
  CHECK(contains(help_text(table, {}, help_extent::all), "--wet"));
  CHECK_THROWS_AS(table.common({"--dry"}), std::logic_error);
}

TEST_CASE("help text: an example whose purpose does not fit into its line has it below") {
  option_table table{"house paint"};
  table.add_example("house paint " + std::string(80, 'x'), "a long one");
  table.add_example("house paint north", "a short one " + std::string(60, 'y') + " " + std::string(60, 'z'));
  CHECK(help_text(table, {}, help_extent::all)
          .ends_with("Examples:\n  house paint " + std::string(80, 'x') + "\n      a long one\n  house paint north\n"
                     + "      a short one " + std::string(60, 'y') + "\n      " + std::string(60, 'z') + "\n"));
}

TEST_CASE("help text: lists and command lines that are too long are continued in the next line") {
  option_table table{"house paint"};
  table.about("The walls:\n\n  north   " + std::string(60, 'a') + " " + std::string(60, 'b') + "\n  south   dry");
  table.add_example("house paint " + std::string(60, 'x') + " " + std::string(60, 'y'), "both");
  auto text = help_text(table, {}, help_extent::all);
  CHECK_MESSAGE(
    contains(text, "\n  north   " + std::string(60, 'a') + "\n          " + std::string(60, 'b') + "\n  south   dry\n"),
    text);
  CHECK_MESSAGE(
    contains(text, "\n  house paint " + std::string(60, 'x') + " \\\n      " + std::string(60, 'y') + "\n      both\n"),
    text);
}

TEST_CASE("tool command: the version says whose, and what it talks and writes") {
  auto text = run_command(paint(), {"--version"}).out;
  CHECK(text
        == fmt::format("house paint {}\nCAF 0.17.6, protocol {}, journal format {}\n", ringmaster_version,
                       protocol_version, journal_format));
  CHECK(in_house({"--version"}).out.starts_with(fmt::format("house {}\n", ringmaster_version)));
}

TEST_CASE("program: lists its commands, hands them their arguments, and says which it has not") {
  auto none = in_house({});
  CHECK(none.code == 2);
  CHECK(none.out == in_house({"help"}).out);
  CHECK(none.out == R"(Usage: house COMMAND [options]

keeps a house

Commands:
  paint       paints walls
  sweep       sweeps floors
  help        this list; help COMMAND shows what COMMAND --help shows
  completion  prints a script that lets bash complete commands: source <(house completion bash)
  version     shows the versions, as --version

Be careful.
house COMMAND --help shows the options that are used most, --help-all all of them.
)");
  CHECK(in_house({"paint", "north"}).out == "red 2 times, 65536\n");
  CHECK(in_house({"help", "paint"}).out == run_command(paint(), {"--help"}).out);
  CHECK(in_house({"help", "paint", "--all"}).out == run_command(paint(), {"--help-all"}).out);
  CHECK(in_house({"--help-all"}).code == 0);
  auto unknown = in_house({"paimt"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err == "house: there is no command \"paimt\"; did you mean paint? `house help` lists all commands\n");
}

TEST_CASE("program: its own commands have help, and refuse what they do not take") {
  CHECK(contains(in_house({"help", "completion"}).out, "Usage: house completion bash"));
  CHECK(contains(in_house({"completion", "bash"}).out, "complete -F _house house"));
  for (auto& [args, sentence] : std::vector<std::pair<std::vector<std::string>, std::string>>{
         {{"completion"}, "house completion: name the shell: completion bash\n"},
         {{"completion", "zsh"}, "house completion: \"zsh\": there is a script for bash only\n"},
         {{"--version", "x"}, "house version: \"x\" is no option; see house version --help\n"},
         {{"help", "paint", "twice"}, "house help: house paint has no command \"twice\"\n"}}) {
    auto refused = in_house(args);
    CHECK(refused.code == 2);
    CHECK(refused.out == "");
    CHECK(refused.err == sentence);
  }
}

TEST_CASE("tool command: what is given once is refused a second time; a flag and what may be repeated is not") {
  auto twice = run_command(paint(), {"north", "--colour=red", "-c", "blue"});
  CHECK(twice.code == 2);
  CHECK(twice.err == "house paint: --colour is given twice\n");
  CHECK(run_command(paint(), {"north", "south", "--dry", "--dry"}).code == 0);
}

TEST_CASE("tool command: one below another goes by its last word") {
  auto whole = paint();
  whole.below.push_back(tool_command::of<paint_call>("paint twice", "paints walls again"));
  whole.below.back().program = "house";
  CHECK(run_command(whole, {"twice", "--coats=0"}).err.starts_with("house paint twice: --coats: "));
  CHECK(run_command(whole, {"twice"}).err == "house paint twice: which wall?\n");
  auto help = run_command(whole, {"--help"}).out;
  CHECK(contains(help, "\n  or:  house paint twice [options]\n"));
  CHECK(contains(help, "\nCommands:\n  paint twice       paints walls again\n"));
}
