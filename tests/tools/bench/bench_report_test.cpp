#include "tools/bench/bench_report.hpp"

#include "tests/tools/clients/cluster_info.hpp"
#include "tests/tools/console/set_columns.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE(
  "bench report: the table fits 100 columns and narrower terminals, and has all of nccl-tests' where it is wide") {
  const bench_options options;
  bench_row measured;
  measured.algorithm = "ring";
  measured.limit_us = 2;
  measured.time_us = 4;
  const auto layout = layout_of({3, 2}, cluster_of(2));
  for (size_t columns : {60, 80, 100}) {
    const bench_table table{options, {.columns = columns}};
    check_width(table.head(layout).substr(table.head(layout).rfind("# ")), columns);
    check_width(table.row(measured), columns);
    CHECK(table.row(measured).find(" ring ") != std::string::npos);
  }
  const bench_table usual{options, {}}, wide{options, {.wide = true}};
  CHECK(usual.head(layout).find("# Not shown: type, redop, root, p50 (--wide shows all)\n") != std::string::npos);
  CHECK(wide.head(layout).ends_with("#wrong   limit\n         (B)   (elements)                                         "
                                    "           (us)   (GB/s)   (GB/s)       (us)       (us)           part\n"));
  CHECK(wide.head(layout).find("Not shown") == std::string::npos);
  CHECK(wide.row(measured).ends_with(" 0    0.50\n"));
}

TEST_CASE("bench report: a row says of each rank on which device, node and host it is") {
  bench_row measured;
  measured.control_messages = 3;
  auto row = json_row({}, measured, layout_of({3, 2}, cluster_of(2)));
  CHECK(row.find(R"("control_messages":1.5,)") != std::string::npos); // of each node
  CHECK(row.ends_with(R"("layout":"2 ranks: 2 nodes of 1 on 1 host","ranks":[)"
                      R"({"rank":0,"device":3,"node":"node-2","host":"lab"},)"
                      R"({"rank":1,"device":2,"node":"node-1","host":"lab"}]})"));
}
