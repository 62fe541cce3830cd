#include "etcd/lease_clock.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

TEST_CASE("lease_clock: counts from the moment before a renewal was sent, and an answer never shortens it") {
  const lease_clock::time_point start{100s};
  lease_clock lease{start, 2s};
  CHECK(lease.holds(start + 1999ms));
  CHECK_FALSE(lease.holds(start + 2s));
  lease.renewed(start + 1500ms, 2s); // answered at any later time
  CHECK(lease.holds(start + 3499ms));
  CHECK_FALSE(lease.holds(start + 3500ms));
  lease.renewed(start + 500ms, 2s); // an older one, answered late
  CHECK(lease.until() == start + 3500ms);
}

TEST_CASE("lease_clock: is in doubt without an answer, sure again with one, and lost for good") {
  const lease_clock::time_point start{100s};
  lease_clock lease{start, 2s};
  CHECK_FALSE(lease.holds(start + 5s));
  CHECK_FALSE(lease.is_lost());
  lease.renewed(start + 5s, 2s);
  CHECK(lease.holds(start + 6s));
  lease.lost();
  CHECK_FALSE(lease.holds(start + 6s));
  lease.renewed(start + 6s, 2s);
  CHECK_FALSE(lease.holds(start + 6s));
  CHECK(lease.is_lost());
}
