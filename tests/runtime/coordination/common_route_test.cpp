#include "runtime/coordination/common_route.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("common route: whoever has none of its own takes the cluster's") {
  for (auto clusters : {"auto", "memory", "link", "messages"})
    for (auto theirs : {"", "auto", clusters}) {
      CAPTURE(theirs);
      CHECK_FALSE(check_route("node alpha", theirs, clusters));
    }
}

TEST_CASE("common route: a contradiction is refused, and it is said whose is which") {
  for (std::string clusters : {"auto", "memory", "link"}) {
    auto problem = check_route("node alpha", "messages", clusters);
    CHECK(code_of(problem) == errc::invalid_argument);
    CHECK(render(problem)
          == "node alpha has route.use \"messages\", and the coordinator that it goes to \"" + clusters
               + "\", which is the whole cluster's: leave it out here, or start the coordinator with "
                 "--route.use=messages (caf-run: in the file of --conf)");
  }
}
