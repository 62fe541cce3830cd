#include "tests/support/processes/launched_program.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/version_date.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// What groff makes of a page, with all warnings; nothing where it is not installed.
std::string rendered(const std::string& page_of) {
  launch::launched_program there{{"sh", "-c", "command -v groff"}};
  if (there.finish() != 0) {
    MESSAGE("groff is not here: the page is not rendered");
    return {};
  }
  launch::launched_program groff{{"sh", "-c", page_of + " | groff -man -Tascii -ww -rLL=80n -P-cbou"}};
  CHECK(groff.finish() == 0);
  CHECK(groff.error == "");
  std::istringstream lines{groff.output};
  for (std::string line; std::getline(lines, line);)
    CHECK_MESSAGE((line.size() <= 80 || contains(line, "--")), line); // a command's line is not broken
  std::istringstream words{groff.output};
  std::string text; // whose lines may break anywhere
  for (std::string word; words >> word;)
    text += text.empty() ? word : ' ' + word;
  return text;
}

} // namespace

TEST_CASE("man page: ringmaster's renders without a warning, and has every command's options") {
  auto text = rendered(RINGMASTER_PROGRAM " man");
  if (text.empty())
    return;
  CHECK(contains(text, "RINGMASTER(1)"));
  CHECK_MESSAGE(contains(text, std::string{version_date} + " RINGMASTER(1)"), text.substr(text.size() - 100));
  CHECK(version_date.starts_with("20"));
  for (auto part :
       {"EXIT STATUS", "ringmaster simulate train", "--strategy S", "ringmaster log DIR [options]", "--json"})
    CHECK_MESSAGE(contains(text, part), part);
}

TEST_CASE("man page: caf-run's renders without a warning, and has its options and exit status") {
  auto text = rendered(RINGMASTER_CAF_RUN " --man");
  if (text.empty())
    return;
  for (auto part : {"CAF-RUN(1)", "--devices-per-node K", "125 if the cluster did not come up", "caf-run --local 4"})
    CHECK_MESSAGE(contains(text, part), part);
}
