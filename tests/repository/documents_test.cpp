// Every file, message, strategy and algorithm that documents name exists, and those that exist are documented.
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

TEST_CASE("documents: every file of the project that a comment or a page names exists") {
  const std::regex path{R"((?:^|[^A-Za-z0-9_./-])((?:actors|messages|runtime|training|planner|client|tools|examples|)"
                        R"(tests|bench|cmake|config|docs)/[A-Za-z0-9_/-]+\.(?:cpp|hpp|proto|md|conf|cmake|py|svg)))"};
  const auto all = repository_files();
  const std::set<std::string> existing{all.begin(), all.end()};
  size_t named = 0;
  for (auto& file : all) {
    const auto extension = std::filesystem::path{file}.extension();
    if (!is_source(file) && extension != ".proto" && extension != ".md" && extension != ".conf")
      continue;
    CAPTURE(file);
    for (auto& each : all_of(text_of_file(file), path, 1)) {
      ++named;
      const bool is_placeholder = each.find("NAME") != each.npos || each.find("_N.") != each.npos;
      const bool exists = existing.count(each) + existing.count(each + ".in") == 1; // .in: CMake makes the file
      CHECK_MESSAGE((is_placeholder || exists), each);
    }
  }
  CHECK(named > 2000); // includes are among them
}

TEST_CASE("documents: docs/PROTOCOL.md has every message that an actor handles") {
  const auto page = text_of_file("docs/PROTOCOL.md");
  // The first two cells of tables, and words in backquotes or asterisks. Other prose may have the same words by chance.
  const std::regex word{R"([A-Za-z_:]+)"}, marked{R"((?:^|\n)\|([^|]*\|[^|]*)\||`([^`\n]*)`|\*([a-z_]+)\*)"};
  std::set<std::string> named;
  for (size_t group : {1, 2, 3})
    for (auto& each : all_of(page, marked, group))
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

TEST_CASE("documents: docs/strategies.md has a section for each strategy, docs/algorithms.md names each algorithm") {
  const auto strategies_page = text_of_file("docs/strategies.md"), algorithms_page = text_of_file("docs/algorithms.md");
  const std::regex word{R"([a-z][a-z_]*)"};
  const auto words = all_of(algorithms_page, word, 0);
  const std::set<std::string> named{words.begin(), words.end()};
  for (auto& each : ringmaster::training::strategies())
    CHECK_MESSAGE(strategies_page.find(fmt::format("\n### {}: ", each.name)) != std::string::npos, each.name);
  for (auto& each : ringmaster::algorithms())
    CHECK_MESSAGE(named.contains(std::string{each.name}), each.name);
}
