#include "client/work.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>

namespace ringmaster {

struct work::state {
  std::function<std::string()> what;
  std::mutex guard;
  std::condition_variable ended;
  bool done = false;
  std::shared_ptr<work_driver> driver;
  std::function<void(const proto::RankCallResponse&)> on_end;
  proto::RankCallResponse answer;
  caf::error problem;
};

std::shared_ptr<work::state> begin_work(std::function<std::string()> what) {
  auto result = std::make_shared<work::state>();
  ensure(static_cast<bool>(what), "calls have a name for their errors");
  result->what = std::move(what);
  return result;
}

void drive(work::state& calls, std::shared_ptr<work_driver> driver,
           std::function<void(const proto::RankCallResponse&)> on_end) {
  std::scoped_lock lock{calls.guard};
  ensure(!calls.done, "calls that have finished need no driver");
  calls.driver.swap(driver);
  calls.on_end = std::move(on_end);
}

void finish(work::state& calls, proto::RankCallResponse answer, caf::error problem) {
  ensure(!answer.success() || !problem, "calls that succeed have no error");
  std::shared_ptr<work_driver> driver; // destroyed after the lock
  {
    std::scoped_lock lock{calls.guard};
    if (calls.done)
      return;
    driver = std::move(calls.driver);
    if (calls.on_end)
      calls.on_end(answer);
    calls.answer = std::move(answer);
    calls.problem = std::move(problem);
    calls.done = true;
  }
  calls.ended.notify_all(); // outside of the lock: a waiting thread takes it
}

namespace {

std::shared_ptr<work_driver> driver_of(work::state& calls) {
  std::scoped_lock lock{calls.guard};
  return calls.driver;
}

} // namespace

work::work(const std::vector<work>& all) : calls_{all.empty() ? nullptr : all.front().calls_} {
  if (all.size() > 1)
    all_.assign(all.begin() + 1, all.end());
}

bool work::test() const {
  if (calls_) {
    if (auto driver = driver_of(*calls_))
      driver->look(*calls_);
    std::scoped_lock lock{calls_->guard};
    if (!calls_->done)
      return false;
  }
  return std::all_of(all_.begin(), all_.end(), [](auto& x) { return x.test(); });
}

caf::error work::wait(caf::timespan limit) const {
  auto until = awake_clock::now() + request_limit(limit);
  if (calls_) {
    if (auto driver = driver_of(*calls_))
      driver->wait(*calls_, until);
    std::unique_lock lock{calls_->guard};
    if (!calls_->ended.wait_until(lock, until, [&] { return calls_->done; }))
      return make_error(errc::timed_out, fmt::format("{} has not ended within {:.1f} s", calls_->what(),
                                                     std::chrono::duration<double>{limit}.count()));
  }
  for (auto& x : all_) {
    auto left = std::max(until - awake_clock::now(), awake_clock::duration{0});
    if (auto problem = x.wait(left); problem == errc::timed_out)
      return problem;
  }
  return error();
}

caf::error work::error() const {
  if (calls_) {
    std::scoped_lock lock{calls_->guard};
    if (calls_->done && calls_->problem)
      return calls_->problem;
  }
  for (auto& x : all_)
    RETURN_ERROR(x.error());
  return caf::none;
}

epoch_number work::epoch() const {
  return epoch_number{answer().epoch()};
}

proto::RankCallResponse work::answer() const {
  if (!calls_)
    return {};
  std::scoped_lock lock{calls_->guard};
  return calls_->answer;
}

} // namespace ringmaster
