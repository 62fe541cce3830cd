#include "tools/console/page_format.hpp"

#include "tests/tools/console/set_columns.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

size_t columns_with(const char* value) {
  const set_columns set{value};
  return page_format::of_console(false).columns;
}

} // namespace

TEST_CASE("page format: a page is as wide as $COLUMNS says, from 60 to 100 columns") {
  CHECK(columns_with("80") == 80);
  CHECK(columns_with("60") == 60);
  CHECK(columns_with("20") == 60);
  CHECK(columns_with("250") == 100);
  for (auto* nothing : {"", "0", "many", "80x", "-5"})
    CHECK_MESSAGE(columns_with(nothing) == 100, nothing);
}

TEST_CASE("page format: tables of a wide page have no limit, and its text does") {
  CHECK(page_format{.columns = 60}.table_columns() == 60);
  CHECK(page_format{.columns = 60, .wide = true}.table_columns() > 1000);
  CHECK(page_format{.columns = 9, .wide = true}.line("one two three", 1) == "one two\n three\n");
  CHECK(page_format{.columns = 9}.bullet("one two three") == "- one two\n  three\n");
}

TEST_CASE("page format: lines that are too long go on below their text, and a wide page has them as they are") {
  const page_format page{.columns = 60};
  const std::string text = "short\n\n  a line that is indented and does not fit into the sixty columns of the page\n"
                           "  ring   12 us  a reason that is so long that it does not fit into what is left of it\n";
  CHECK(page.lines(text)
        == "short\n\n  a line that is indented and does not fit into the sixty\n    columns of the page\n"
           "  ring   12 us  a reason that is so long that it does not\n                fit into what is left of it\n");
  CHECK(page_format{.columns = 60, .wide = true}.lines(text) == text);
  CHECK(page.lines("no end of line") == "no end of line\n");
}
