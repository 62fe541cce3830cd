// Clusters of real processes, which are killed, stopped and go on at random, and whose devices die, hang and are slow
// in processes that live on: what `./run soak` does for long, for a moment.
#include "tests/support/processes/launched_program.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace ringmaster::launch;

TEST_CASE("ill treatment: every kind is right over every route while processes are killed, stopped and continued") {
  struct row {
    const char *route, *nodes;
  };
  for (auto [route, nodes] : {row{"memory", "2"}, row{"link", "3"}, row{"messages", "4"}, row{"auto", "3"}}) {
    CAPTURE(route);
    launched_program run{{RINGMASTER_SOAK, "--events", "12", "--seed", "11", "--route", route, "--nodes", nodes}};
    run.wait_until([&] { return run.status.has_value(); }); // twice the limit, on a busy machine
    auto status = run.finish();
    CAPTURE(run.output);
    CAPTURE(run.error);
    CHECK(status == 0);
    CHECK(run.output.find(" right of 10 kinds, ") != std::string::npos);
    CHECK(run.output.find(" 0 wrong; ") != std::string::npos);
  }
}
