// The check of clients' histories accepts what a communicator may answer, and nothing else.
#include "tests/support/histories/client_history.hpp"
#include "tests/support/histories/linearization.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <random>

using namespace ringmaster::test;

namespace {

using kind = client_call::kind;
using outcome = client_call::outcome;
using group = client_call::group;

/// A history that a test writes by hand. Times are numbers.
class written_history {
public:
  written_history() { at(0, 1, {.what = kind::make, .communicator = 1, .members = all}); }

  /// `answered` 0: never.
  void at(uint64_t called, uint64_t answered, client_call x) {
    auto copy = x;
    const auto number = history.begin(std::move(x), called);
    if (answered == 0)
      return;
    auto& call = history.end(number, answered);
    const auto times = call.times;
    call = std::move(copy);
    call.times = times;
  }
  void run(uint64_t called, uint64_t answered, uint64_t operation, uint64_t sequence, group over = all) {
    at(called, answered,
       {.what = kind::run,
        .communicator = 1,
        .operation = operation,
        .sequence = sequence,
        .groups = {std::move(over)}});
  }
  void read(uint64_t called, uint64_t answered, uint64_t operation, uint64_t device, group over) {
    at(called, answered,
       {.what = kind::read, .communicator = 1, .operation = operation, .device = device, .groups = {std::move(over)}});
  }
  void read_input(uint64_t called, uint64_t answered, uint64_t operation, uint64_t device) {
    at(called, answered,
       {.what = kind::read, .communicator = 1, .operation = operation, .device = device, .is_input = true});
  }
  void status(uint64_t called, uint64_t answered, uint64_t epoch, group members) {
    at(called, answered, {.what = kind::status, .communicator = 1, .epoch = epoch, .members = std::move(members)});
  }
  void fail(uint64_t called, uint64_t answered, uint64_t operation, outcome how) {
    at(called, answered,
       {.what = kind::run, .communicator = 1, .operation = operation, .answer = how, .reason = "a device was lost"});
  }
  bool is_right() const { return history.problem().empty(); }

  static inline const group all{1, 2, 3}, fewer{1, 2};
  client_history history;
};

} // namespace

TEST_CASE("histories: one client's calls, one after the other, are right") {
  written_history x;
  x.run(2, 3, 1, 1);
  x.read(4, 5, 1, 1, x.all);
  x.status(6, 7, 1, x.all);
  x.status(8, 9, 2, x.fewer);
  x.run(10, 11, 2, 2, x.fewer);
  x.read(12, 13, 2, 2, x.fewer);
  x.fail(14, 15, 3, outcome::failed);
  x.read_input(16, 17, 3, 1);
  x.at(18, 19, {.what = kind::destroy, .communicator = 1});
  x.at(20, 21, {.what = kind::run, .communicator = 1, .operation = 4, .answer = outcome::gone});
  CHECK(x.history.problem() == "");
}

TEST_CASE("histories: concurrent calls may have happened in either order") {
  written_history x;
  x.run(2, 10, 1, 2);
  x.run(3, 9, 2, 1);
  x.read_input(2, 10, 1, 1);
  x.read(2, 10, 2, 1, x.all);
  CHECK(x.history.problem() == "");
  x.run(11, 12, 3, 4);
  CHECK_FALSE(x.is_right());
}

TEST_CASE("histories: a call without an answer may have happened at any later time, or not") {
  for (bool happened : {false, true}) {
    written_history x;
    x.run(2, 0, 1, 0);
    x.read_input(3, 4, 1, 1);
    if (happened)
      x.read(5, 6, 1, 2, x.all);
    else
      x.read_input(5, 6, 1, 2);
    x.run(7, 8, 2, happened ? 2 : 1);
    CHECK(x.history.problem() == "");
    x.run(9, 10, 3, 4); // it was one call, not two
    CHECK_FALSE(x.is_right());
  }
}

TEST_CASE("histories: wrong ones are rejected, with the call that fits no order") {
  written_history x;
  SUBCASE("a result that is lost") {
    x.run(2, 3, 1, 1);
    x.read_input(4, 5, 1, 1);
  }
  SUBCASE("a result that comes from nowhere") {
    x.read(2, 3, 1, 1, x.all);
  }
  SUBCASE("an operation that has failed and has changed its inputs") {
    x.fail(2, 3, 1, outcome::failed);
    x.at(4, 5, {.what = kind::read, .communicator = 1, .operation = 1, .device = 1});
  }
  SUBCASE("an operation that is run twice") {
    x.run(2, 3, 1, 1);
    x.run(4, 5, 2, 3);
  }
  SUBCASE("two operations with one number") {
    x.run(2, 5, 1, 1);
    x.run(3, 4, 2, 1);
  }
  SUBCASE("results of two groups") {
    x.run(2, 3, 1, 1, x.fewer);
    x.read(4, 5, 1, 1, x.fewer);
    x.read(4, 5, 1, 2, x.all);
  }
  SUBCASE("a result of neither of the possible groups") {
    x.at(2, 3, {.what = kind::run, .communicator = 1, .operation = 1, .sequence = 1, .groups = {x.fewer, {1, 3}}});
    x.read(4, 5, 1, 1, x.all);
  }
  SUBCASE("a stale answer") {
    x.status(2, 3, 2, x.fewer);
    x.status(4, 5, 1, x.all);
  }
  SUBCASE("an epoch with two sets of members") {
    x.status(2, 3, 2, x.fewer);
    x.status(4, 5, 2, {1, 3});
  }
  SUBCASE("a communicator that is lost after it was made") {
    x.at(2, 3, {.what = kind::status, .communicator = 1, .answer = outcome::gone});
  }
  SUBCASE("a communicator that serves after it was destroyed") {
    x.at(2, 3, {.what = kind::destroy, .communicator = 1});
    x.run(4, 5, 1, 1);
  }
  SUBCASE("a communicator that was given to two calls") {
    x.at(2, 3, {.what = kind::make, .communicator = 1, .members = x.all});
  }
  SUBCASE("a communicator that was made a second time, for a call that was answered") {
    x.history.note_listed({1, 2}, 4, 5);
  }
  SUBCASE("an error without a reason") {
    x.at(2, 3, {.what = kind::run, .communicator = 1, .operation = 1, .answer = outcome::failed});
  }
  CHECK_FALSE(x.is_right());
}

TEST_CASE("histories: the cluster lists a communicator that a call without an answer has made") {
  written_history x;
  x.at(2, 0, {.what = kind::make});
  x.history.note_listed({1, 7}, 4, 5);
  CHECK(x.history.problem() == "");
  x.history.note_listed({1, 7, 8}, 6, 7);
  CHECK_FALSE(x.is_right());
}

TEST_CASE("histories: the first call that cannot be explained is named") {
  written_history x;
  x.run(2, 3, 1, 1);
  x.run(4, 5, 2, 3);
  CHECK(contains(x.history.problem(), "after 2 of its 3 calls"));
  CHECK(contains(x.history.problem(), "number 3"));
}

namespace {

/// A right history: calls of several clients at once, of which some are never answered, that happen in one order.
written_history long_history(uint64_t seed, size_t calls) {
  std::mt19937_64 random{seed};
  written_history x;
  constexpr uint64_t gap = 100, overlap = 350; // some four calls are in flight
  uint64_t sequence = 0, operation = 0;
  for (size_t i = 0; i < calls; ++i) {
    const auto happens = 1000 + i * gap;
    const auto called = happens - random() % overlap, answered = happens + random() % overlap;
    const bool is_known = random() % 50 != 0;
    switch (random() % 3) {
      case 0:
        ++operation;
        if (is_known)
          x.run(called, answered, operation, ++sequence);
        else if (x.run(called, 0, operation, 0); random() % 2 == 0)
          ++sequence;
        break;
      case 1: x.status(called, answered, 1, x.all); break;
      default: x.at(called, answered, {.what = kind::write, .communicator = 1, .operation = operation + 1}); break;
    }
  }
  return x;
}

} // namespace

TEST_CASE("histories: thousands of concurrent calls are checked in a moment, right or wrong") {
  const auto begun = std::clock(); // of this process: others may have the machine
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    auto x = long_history(seed, 3000);
    CHECK(x.history.problem() == "");
    x.run(10'000'000, 10'000'001, 1'000'000, 1);
    CHECK_FALSE(x.is_right());
  }
  CHECK(std::clock() - begun < 10 * CLOCKS_PER_SEC);
}

namespace {

/// A set that grows: calls add, and the last one wants more than there can be.
struct set_model {
  struct call {
    call_times times;
    unsigned number;
  };
  using state = uint64_t;
  static constexpr unsigned unreachable = 63;

  static size_t hash(state x) { return x * 0x9E3779B97F4A7C15u; }
  static std::vector<state> next(state before, const call& x) {
    return x.number == unreachable ? std::vector<state>{} : std::vector{before | (state{1} << x.number)};
  }
  static bool alike(const call&, const call&) { return false; }
};

} // namespace

TEST_CASE("histories: of calls without an answer that have too many orders the search gives up") {
  for (unsigned open : {8u, 24u}) {
    std::vector<set_model::call> calls;
    for (unsigned i = 0; i < open; ++i)
      calls.push_back({{1, call_times::never}, i});
    calls.push_back({{2, 3}, set_model::unreachable});
    linearization<set_model, set_model::call> search{calls};
    CHECK(search.problem().has_value() == (open == 8));
    CHECK(search.has_given_up() == (open == 24));
  }
}
