#include "tools/options/tool_command.hpp"

#include "messages/errc.hpp"
#include "messages/version.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/help_text.hpp"
#include "tools/options/program.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// A command as a newcomer writes one.
class paint_call final : public command_call {
  void declare(option_table& table) override {
    table.about(
      "Paints a wall. This paragraph is long enough that it has to be divided into two lines, since help has no "
      "more than 120 columns.\n\n  this line stays   as it is");
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

TEST_CASE("tool command: help is made of the table, with defaults and within 120 columns") {
  CHECK(run_command(paint(), {"--help"}).out == R"(usage: house paint WALL... [options]

Paints a wall. This paragraph is long enough that it has to be divided into two lines, since help has no more than 120
columns.

  this line stays   as it is

  WALL...         which one
  -c, --colour C  red, green or blue (red)
  --coats N       how many (2)

The brush.
  --size-of-a-very-large-brush SIZE
                  of bristles (64K)
  --dry           only looks
  --version       which versions these are
  -h, --help      this text

Mind the carpet.

For example:
  house paint north --colour green   a green wall
)");
}

TEST_CASE("help text: an example that leaves its purpose no room has it below, and nothing is wider than the help") {
  option_table table{"house paint"};
  table.add_example("house paint " + std::string(100, 'x'), "a long one");
  table.add_example("house paint north", "a short one " + std::string(60, 'y') + " " + std::string(60, 'z'));
  CHECK(help_text(table, {}).ends_with("For example:\n  house paint " + std::string(100, 'x')
                                       + "\n      a long one\n  house paint north\n" + "      a short one "
                                       + std::string(60, 'y') + "\n      " + std::string(60, 'z') + "\n"));
}

TEST_CASE("help text: lists and command lines that are too long go on in the next line") {
  option_table table{"house paint"};
  table.about("The walls:\n\n  north   " + std::string(60, 'a') + " " + std::string(60, 'b') + "\n  south   dry");
  table.add_example("house paint " + std::string(60, 'x') + " " + std::string(60, 'y'), "both");
  auto text = help_text(table, {});
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
  CHECK(
    none.out
    == "usage: house COMMAND [options]\n\nkeeps a house\n\n  paint       paints walls\n  sweep       sweeps floors\n"
       "  help        this text; help COMMAND says what a command takes, as COMMAND --help does\n"
       "  completion  a script that lets bash complete all this: source <(house completion bash)\n"
       "  man         the manual page: house man | man -l -\n"
       "  version     which versions these are, as --version\n\nBe careful.\n");
  CHECK(in_house({"paint", "north"}).out == "red 2 times, 65536\n");
  CHECK(in_house({"help", "paint"}).out == run_command(paint(), {"--help"}).out);
  auto unknown = in_house({"paimt"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err
        == "house: there is no command \"paimt\"; did you mean paint? `house help` lists those there are\n");
}

TEST_CASE("program: its own commands have help, and refuse what they do not take") {
  CHECK(contains(in_house({"help", "man"}).out, "usage: house man\n"));
  CHECK(contains(in_house({"help", "completion"}).out, "usage: house completion bash"));
  CHECK(contains(in_house({"completion", "bash"}).out, "complete -F _house house"));
  for (auto& [args, sentence] : std::vector<std::pair<std::vector<std::string>, std::string>>{
         {{"completion"}, "house completion: for which shell? completion bash is what there is\n"},
         {{"completion", "zsh"}, "house completion: \"zsh\": there is a script for bash only\n"},
         {{"man", "paint"}, "house man: \"paint\" is no option; see house man --help\n"},
         {{"--version", "x"}, "house version: \"x\" is no option; see house version --help\n"},
         {{"help", "paint", "twice"}, "house help: house paint has no command \"twice\" below it\n"}}) {
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
  CHECK(contains(run_command(whole, {"--help"}).out, "\n       house paint twice [options]   paints walls again\n"));
}
