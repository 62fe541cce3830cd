#include "runtime/health/restart_intensity.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

TEST_CASE("rate_limiter: the first is reported at once, later ones together, when the time has passed") {
  rate_limiter x{60s};
  const rate_limiter::time_point start{100h};
  CHECK(x.happened(start) == 1);
  for (int i = 1; i <= 500; ++i)
    CHECK(x.happened(start + i * 100ms) == 0);
  CHECK(x.happened(start + 60s) == 501);
  CHECK(x.happened(start + 119s) == 0);
  CHECK(x.happened(start + 200s) == 2);
}
