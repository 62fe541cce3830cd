// What documents and comments name is there, and what is there is named.
#include "runtime/algorithms/registry.hpp"
#include "tests/repository/repository_files.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <regex>
#include <set>

using namespace ringmaster::test;

namespace {

std::vector<std::string> all_of(const std::string& text, const std::regex& what, size_t group) {
  std::vector<std::string> result;
  for (std::sregex_iterator i{text.begin(), text.end(), what}, end; i != end; ++i)
    result.push_back((*i)[group]);
  return result;
}

} // namespace

TEST_CASE("documents: every file of ours that a comment or a page names is there") {
  const std::regex path{R"((?:^|[^A-Za-z0-9_./-])((?:actors|messages|runtime|client|tools|examples|tests|bench|cmake|)"
                        R"(config|docs)/[A-Za-z0-9_/-]+\.(?:cpp|hpp|proto|md|conf|cmake|py|svg)))"};
  const auto all = repository_files();
  const std::set<std::string> there{all.begin(), all.end()};
  size_t named = 0;
  for (auto& file : all) {
    const auto extension = std::filesystem::path{file}.extension();
    if (!is_source(file) && extension != ".proto" && extension != ".md" && extension != ".conf")
      continue;
    CAPTURE(file);
    for (auto& each : all_of(text_of_file(file), path, 1)) {
      ++named;
      const bool stands_for_any = each.find("NAME") != each.npos || each.find("_N.") != each.npos;
      const bool is_there = there.count(each) + there.count(each + ".in") == 1; // or is made when it is configured
      CHECK_MESSAGE((stands_for_any || is_there), each);
    }
  }
  CHECK(named > 2000); // includes are among them
}

TEST_CASE("documents: the page of the protocol has every message that an actor takes") {
  const auto page = text_of_file("docs/PROTOCOL.md");
  // A table's first two cells, and what stands in backquotes or asterisks: prose has such words, too.
  const std::regex word{R"([A-Za-z_:]+)"}, told{R"((?:^|\n)\|([^|]*\|[^|]*)\||`([^`\n]*)`|\*([a-z_]+)\*)"};
  std::set<std::string> named;
  for (size_t group : {1, 2, 3})
    for (auto& each : all_of(page, told, group))
      for (auto& name : all_of(each, word, 0))
        named.insert(name);
  const std::regex taken{R"((?:reacts_to|replies_to)<([^>]*)>)"}, ours{R"((?:^|[ ,<])(?:proto::|gpu_sim::)?(\w+))"};
  size_t messages = 0;
  for (auto file : {"messages/interfaces.hpp", "actors/training/interfaces.hpp"})
    for (auto& list : all_of(text_of_file(file), taken, 1))
      for (auto name : all_of(list, ours, 1)) {
        if (const auto nested = name.find('_'); nested != name.npos && std::isupper(name.front()))
          name.replace(nested, 1, "::");
        const bool is_plain = name == "atom" || name == "caf" || name == "std" || name == "device_id"
                              || name.starts_with("uint");
        messages += is_plain ? 0 : 1;
        CHECK_MESSAGE((is_plain || named.count(name) == 1), name);
      }
  CHECK(messages > 90);
}

TEST_CASE(
  "documents: each strategy has its section in docs/strategies.md, each algorithm is told in docs/collectives.md") {
  const auto strategies_page = text_of_file("docs/strategies.md"),
             collectives_page = text_of_file("docs/collectives.md");
  const std::regex word{R"([a-z][a-z_]*)"};
  const auto words = all_of(collectives_page, word, 0);
  const std::set<std::string> told{words.begin(), words.end()};
  for (auto& each : ringmaster::training::strategies())
    CHECK_MESSAGE(strategies_page.find(fmt::format("\n### {}: ", each.name)) != std::string::npos, each.name);
  for (auto& each : ringmaster::algorithms())
    CHECK_MESSAGE(told.contains(std::string{each.name}), each.name);
}
