#include "tools/validation/csv_table.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <array>
#include <fstream>

using namespace ringmaster;

namespace {

caf::expected<csv_table> table_of(const std::string& text) {
  constexpr std::array<std::string_view, 3> required{"name", "layers", "seconds"};
  constexpr std::array<std::string_view, 1> ignored{"note"};
  test::temporary_directory dir;
  const auto file = (dir.path() / "rows.csv").string();
  std::ofstream{file} << text;
  return csv_table::read(file, {required, ignored});
}

std::string table_refusal(const std::string& text) {
  auto table = table_of(text);
  REQUIRE(!table);
  CHECK(code_of(table.error()) == errc::corrupt);
  const auto sentence = render(table.error());
  return sentence.substr(sentence.find("rows.csv"));
}

} // namespace

TEST_CASE("csv table: cells are read by the names of their columns, in any order") {
  for (std::string text :
       {"name,layers,seconds\na,3,0.5\n\nb,7,2\n", "seconds,note, # layers,name\r\n0.5,,3,a\r\n2,x,7,b",
        "\xef\xbb\xbfname,seconds,layers\na,0.5,3\nb,2,7\n"}) {
    CAPTURE(text);
    const auto table = table_of(text);
    REQUIRE_MESSAGE(table.engaged(), render(table.error()));
    REQUIRE(table->row_count() == 2);
    auto first = table->row(0), second = table->row(1);
    CHECK(first.text("name") == "a");
    CHECK(first.whole("layers") == 3);
    CHECK(first.number("seconds") == 0.5);
    CHECK(second.count_or_none("layers") == 7);
    CHECK(!first.problem());
    CHECK(!second.problem());
  }
}

TEST_CASE("csv table: a missing, unknown or repeated column is reported with what is right") {
  CHECK(table_refusal("name,seconds\na,1\n")
        == "rows.csv, line 1: there is no column \"layers\"; the columns that are needed are \"name\", \"layers\", "
           "\"seconds\"");
  CHECK(
    table_refusal("name,layer,seconds\n")
    == "rows.csv, line 1: column 2, \"layer\", is unknown; did you mean \"layers\"? the columns that are needed are "
       "\"name\", \"layers\", \"seconds\"");
  CHECK(table_refusal("name,layers,seconds,colour\n")
        == "rows.csv, line 1: column 4, \"colour\", is unknown; the columns that are needed are \"name\", \"layers\", "
           "\"seconds\"");
  CHECK(table_refusal("name,layers,seconds,layers\n")
        == "rows.csv, line 1: two columns are named \"layers\"; each name must be unique");
}

TEST_CASE("csv table: a row with another number of cells is reported with its line") {
  CHECK(table_refusal("name,layers,seconds\na,3,1\nb,3\n")
        == "rows.csv, line 3: there are 2 cells, but line 1 has 3 columns");
  CHECK(table_refusal("name,layers,seconds\na,3,1,4\n")
        == "rows.csv, line 2: there are 4 cells, but line 1 has 3 columns");
}

TEST_CASE("csv table: the first number that is not allowed is the row's problem") {
  const auto table = table_of("name,layers,seconds\na,2.5,-1\nb,0,0\n");
  REQUIRE_MESSAGE(table.engaged(), render(table.error()));
  auto first = table->row(0);
  CHECK(first.whole("layers") == 1);
  CHECK(first.number("seconds") == 1);
  const auto sentence = render(first.problem());
  CHECK(sentence.substr(sentence.find("rows.csv"))
        == "rows.csv, line 2: \"2.5\" is no layers (a whole number above 0)");
  auto second = table->row(1);
  CHECK(second.count_or_none("layers") == 0);
  CHECK(!second.problem());
  CHECK(second.number("seconds") == 1);
  CHECK(second.problem());
}

TEST_CASE("csv table: a file that is missing is reported") {
  constexpr std::array<std::string_view, 1> name{"name"};
  const auto table = csv_table::read("/nowhere/rows.csv", {name, {}});
  REQUIRE(!table);
  CHECK(code_of(table.error()) == errc::io_error);
}
