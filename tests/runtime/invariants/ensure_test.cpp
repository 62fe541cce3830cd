#include "runtime/invariants/ensure.hpp"

#include "tests/runtime/invariants/broken_invariant.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

struct counter {
  std::string state_text() const { return "counted to " + std::to_string(count); }
  void rise_to(int next) {
    ensure_of(*this, next > count, "the counter rises");
    count = next;
  }

  int count = 0;
};

} // namespace

TEST_CASE("ensure: a process whose invariant is broken names it with its place, and aborts") {
  ensure(true, "this holds");
  const auto log = log_of_abort([] { ensure(1 > 2, "one is more than two"); });
  CHECK_MESSAGE(
    contains(log, "an invariant is broken: one is more than two (tests/runtime/invariants/ensure_test.cpp:"), log);
}

TEST_CASE("ensure: the state of the object that found out is logged, and what others report") {
  const auto log = log_of_abort([] {
    report_before_abort([] { return std::string{"the latest events: none"}; });
    counter x;
    x.rise_to(7);
    x.rise_to(7);
  });
  CHECK_MESSAGE(contains(log, "the counter rises ("), log);
  CHECK_MESSAGE(contains(log, "state: counted to 7"), log);
  CHECK_MESSAGE(contains(log, "the latest events: none"), log);
}

TEST_CASE("ensure: a report that breaks an invariant itself does not keep the process") {
  const auto log = log_of_abort([] {
    report_before_abort([]() -> std::string {
      ensure(false, "the second one");
      return {};
    });
    ensure(false, "the first one");
  });
  CHECK_MESSAGE(contains(log, "the first one ("), log);
}
