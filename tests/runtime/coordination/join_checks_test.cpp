#include "runtime/coordination/join_checks.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("join checks: a node without a route of its own takes the cluster's") {
  for (auto clusters : {"auto", "memory", "link", "messages"})
    for (auto theirs : {"", "auto", clusters}) {
      CAPTURE(theirs);
      CHECK_FALSE(check_route("node alpha", theirs, clusters));
    }
}

TEST_CASE("join checks: a node with another route than the cluster is refused, and the error names both") {
  for (std::string clusters : {"auto", "memory", "link"}) {
    auto problem = check_route("node alpha", "messages", clusters);
    CHECK(code_of(problem) == errc::invalid_argument);
    CHECK(render(problem)
          == "node alpha has route.use \"messages\", but its coordinator has \"" + clusters
               + "\", which applies to the whole cluster: omit it here, or start the coordinator with "
                 "--route.use=messages (caf-run: in the file of --conf)");
  }
}

TEST_CASE("join checks: a rank may join its own job's coordinator, and one that the user named") {
  CHECK_FALSE(check_job("rank 1", "a", "a"));
  CHECK_FALSE(check_job("rank 1", "", "a"));
  CHECK_FALSE(check_job("rank 1", "", ""));
  for (auto ours : {"b", ""}) {
    auto problem = check_job("rank 1", "a", ours);
    CHECK(code_of(problem) == errc::refused);
    CHECK(render(problem).find("rank 1 belongs to the job \"a\"") == 0);
  }
}
