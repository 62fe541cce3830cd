#include "runtime/health/deadlines.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

deadlines::time_point at(int seconds) {
  return deadlines::time_point{} + std::chrono::seconds{seconds};
}

} // namespace

TEST_CASE("deadlines: those that have passed come in their order, and once") {
  deadlines x;
  x.add(1, at(30));
  x.add(2, at(10));
  x.add(3, at(20));
  x.remove(3);
  x.remove(99);
  CHECK(x.take_due(at(9)).empty());
  CHECK(x.take_due(at(30)) == std::vector<uint64_t>{2, 1});
  CHECK(x.take_due(at(30)).empty());
}

TEST_CASE("deadlines: one timer serves all that end later") {
  deadlines x;
  CHECK(!x.timer());
  x.add(1, at(30));
  CHECK(x.timer() == at(30));
  for (uint64_t i = 2; i < 1000; ++i) {
    x.add(i, at(30 + static_cast<int>(i)));
    CHECK(!x.timer());
    x.remove(i);
  }
  x.add(1000, at(5));
  CHECK(x.timer() == at(5));
  CHECK(x.take_due(at(5)) == std::vector<uint64_t>{1000});
  CHECK(!x.timer()); // that of 30 s is still to come
  x.remove(1);
  x.add(1001, at(40));
  CHECK(!x.timer());
  CHECK(x.take_due(at(30)).empty());
  CHECK(x.timer() == at(40));
}
