#include "tools/bench/bench_report.hpp"

#include "tests/tools/clients/cluster_info.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

TEST_CASE("bench report: a row says of each rank on which device, node and host it is") {
  bench_row measured;
  measured.control_messages = 3;
  auto row = json_row({}, measured, layout_of({3, 2}, cluster_of(2)));
  CHECK(row.find(R"("control_messages":1.5,)") != std::string::npos); // of each node
  CHECK(row.ends_with(R"("layout":"2 ranks: 2 nodes of 1 on 1 host","ranks":[)"
                      R"({"rank":0,"device":3,"node":"node-2","host":"lab"},)"
                      R"({"rank":1,"device":2,"node":"node-1","host":"lab"}]})"));
}
