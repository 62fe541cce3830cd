#include "client/work.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

proto::RankCallResponse answer_of(uint64_t epoch) {
  proto::RankCallResponse result;
  result.set_success(true);
  result.set_epoch(epoch);
  return result;
}

caf::error failure(const char* why) {
  return make_error(errc::refused, why);
}

/// Calls of three communicators under one handle.
struct three_calls {
  std::vector<std::shared_ptr<work::state>> each{begin_work([] { return "rank 0 of communicator 1: barrier"; }),
                                                 begin_work([] { return "rank 0 of communicator 2: barrier"; }),
                                                 begin_work([] { return "rank 0 of communicator 3: barrier"; })};
  work all{std::vector<work>{work{each[0]}, work{each[1]}, work{each[2]}}};
};

} // namespace

TEST_CASE("work: calls of several communicators have ended when the last of them has, in any order") {
  for (auto& order : {std::vector{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    three_calls x;
    for (auto i : order) {
      CHECK_FALSE(x.all.test());
      CHECK(code_of(x.all.wait(0ns)) == errc::timed_out);
      finish(*x.each[static_cast<size_t>(i)], answer_of(5), {});
    }
    CHECK(x.all.test());
    CHECK(!x.all.wait(0ns));
    CHECK(x.all.epoch() == epoch_number{5});
  }
}

TEST_CASE("work: a failure of any of them is the whole's, and the others are waited for all the same") {
  for (size_t failed = 0; failed < 3; ++failed) {
    CAPTURE(failed);
    three_calls x;
    finish(*x.each[failed], {}, failure("no"));
    CHECK(render(x.all.error()) == "no");
    CHECK_FALSE(x.all.test());
    auto waited = x.all.wait(0ns);
    CHECK(code_of(waited) == errc::timed_out);
    CHECK(render(waited).find(failed == 0 ? "communicator 2: barrier has not ended" : "communicator 1: barrier has not")
          != std::string::npos);
    for (auto& call : x.each)
      finish(*call, answer_of(2), {});
    CHECK(render(x.all.wait(0ns)) == "no");
    CHECK(x.all.test());
  }
}

TEST_CASE("work: how it has ended stays so, and copies are handles of the same calls") {
  auto calls = begin_work([] { return "rank 1 of communicator 3: all_reduce"; });
  work one{calls}, other = one;
  CHECK(one.epoch() == epoch_number{0});
  finish(*calls, answer_of(4), {});
  finish(*calls, {}, failure("too late"));
  CHECK(!other.error());
  CHECK(other.epoch() == epoch_number{4});
  CHECK(other.answer().success());
  CHECK(work{}.test());
  CHECK(!work{}.wait(0ns));
  CHECK(work{std::vector<work>{}}.test());
}

TEST_CASE("work: a thread that waits is woken") {
  three_calls x;
  caf::error found = failure("nothing was waited for");
  std::thread waiter{[&] { found = x.all.wait(60s); }};
  for (auto i : {1, 0, 2})
    finish(*x.each[static_cast<size_t>(i)], answer_of(1), {});
  waiter.join();
  CHECK(!found);
}
