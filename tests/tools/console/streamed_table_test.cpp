#include "tools/console/streamed_table.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

streamed_table table_in(const page_format& page) {
  return {{{{"size", "(B)"}, 6},
           {{"type", ""}, 8, text_side::left, 1},
           {{"time", "(us)"}, 8},
           {{"p99", "(us)"}, 8, text_side::right, 2}},
          page};
}

} // namespace

TEST_CASE("streamed table: rows have the columns of the head, whatever their order of leaving out") {
  const auto all = table_in({.columns = 33});
  CHECK(all.head() == "  size type         time      p99\n   (B)              (us)     (us)\n");
  CHECK(all.row({"8", "float32", "1.50", "2.00"}) == "     8 float32      1.50     2.00\n");
  CHECK(all.note() == "");
  const auto less = table_in({.columns = 32});
  CHECK(less.head() == "  size     time      p99\n   (B)     (us)     (us)\n");
  CHECK(less.row({"8", "float32", "1.50", "2.00"}) == "     8     1.50     2.00\n");
  CHECK(less.note() == "Not shown: type (--wide shows all)");
}

TEST_CASE("streamed table: columns without an order are shown on the narrowest page; a wide page shows all") {
  const auto least = table_in({.columns = 3});
  CHECK(least.row({"8", "float32", "1.50", "2.00"}) == "     8     1.50\n");
  CHECK(least.note() == "Not shown: type, p99 (--wide shows all)");
  CHECK(table_in({.columns = 3, .wide = true}).note() == "");
}
