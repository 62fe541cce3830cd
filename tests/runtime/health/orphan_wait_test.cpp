#include "runtime/health/connection_silence.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

TEST_CASE("orphan_wait: patience counts from the loss, however many tries come to nothing, and afresh after a join") {
  const std::chrono::steady_clock::time_point start{1h};
  orphan_wait wait{60s};
  CHECK_FALSE(wait.is_orphaned());
  CHECK(wait.left(start) == 60s);
  wait.lost(start);
  CHECK(wait.is_orphaned());
  wait.lost(start + 50s); // a try came to nothing
  CHECK(wait.left(start + 59s) == 1s);
  CHECK(wait.left(start + 60s) == 0s);
  wait.joined();
  CHECK_FALSE(wait.is_orphaned());
  wait.lost(start + 100s);
  CHECK(wait.left(start + 159s) == 1s);
  CHECK(orphan_wait{0s}.left(start) == 0s);
}
