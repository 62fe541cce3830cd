#include "runtime/text/pages/text_table.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

text_table small_table() {
  text_table table{{left_column("name"), right_column("seconds", 2), right_column("GB", 1), right_column("note")}};
  table.add_row({"a", "1.25", "80.0", ""});
  table.add_row({"longer", "10.5", "7.5", ""});
  return table;
}

} // namespace

TEST_CASE("text table: columns are as wide as their cells, and empty columns are not shown") {
  CHECK(small_table().text(100, "--wide shows all")
        == "name   seconds   GB\n"
           "a         1.25 80.0\n"
           "longer    10.5  7.5\n");
  CHECK(small_table().text(19, "--wide shows all") == small_table().text(100, "--wide shows all"));
}

TEST_CASE("text table: a narrow table leaves columns out in their stated order and names them") {
  CHECK(small_table().text(18, "all: --wide")
        == "name   seconds\n"
           "a         1.25\n"
           "longer    10.5\n"
           "Not shown: GB\n"
           "(all: --wide)\n");
  CHECK(small_table().text(12, "more")
        == "name\n"
           "a\n"
           "longer\n"
           "Not shown:\n"
           "seconds, GB\n"
           "(more)\n");
}
