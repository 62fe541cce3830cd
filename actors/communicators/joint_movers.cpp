#include "actors/communicators/joint_movers.hpp"

#include "actors/calls/spin.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace ringmaster {

struct joint_movers::shared_state {
  std::atomic<uint64_t> changes{0}; ///< Jobs that came, and the end.
  std::mutex mutex;
  std::condition_variable changed;
  // Under the mutex:
  std::deque<std::shared_ptr<joint_job>> jobs; ///< With slices that nobody may have taken yet.
  uint32_t sleeping = 0;
  bool ending = false;

  /// Under the lock, which is free again when others are woken: they would only find it taken.
  void announce(std::unique_lock<std::mutex> lock) {
    ++changes;
    const bool some_sleep = sleeping > 0;
    lock.unlock();
    if (some_sleep)
      changed.notify_all();
  }

  std::shared_ptr<joint_job> first_job() {
    std::lock_guard guard{mutex};
    return jobs.empty() ? nullptr : jobs.front();
  }

  /// Nothing of it is left to take.
  void remove(const std::shared_ptr<joint_job>& job) {
    std::lock_guard guard{mutex};
    std::erase(jobs, job);
  }

  /// Returns whether there is to be more work than there was at `seen`.
  bool wait(uint64_t seen) {
    constexpr auto limit = std::chrono::microseconds{50};
    if (!spin_until([&] { return changes != seen; }, limit)) {
      std::unique_lock lock{mutex};
      ++sleeping;
      changed.wait(lock, [&] { return changes != seen; });
      --sleeping;
    }
    std::lock_guard guard{mutex};
    return !ending;
  }

  void work(uint32_t worker) {
    for (uint64_t seen = 0; wait(seen);) {
      seen = changes;
      while (auto job = first_job()) {
        while (job->move_slice(worker)) {
        }
        remove(job);
      }
    }
  }
};

joint_movers::joint_movers(uint32_t threads) : state_(std::make_shared<shared_state>()) {
  for (uint32_t i = 0; i < threads; ++i)
    threads_.emplace_back([state = state_, i] { state->work(i + 1); });
}

joint_movers::~joint_movers() {
  {
    std::unique_lock lock{state_->mutex};
    state_->ending = true;
    state_->announce(std::move(lock));
  }
  for (auto& x : threads_)
    if (x.get_id() == std::this_thread::get_id())
      x.detach(); // it has let go of the last communicator
    else
      x.join();
}

void joint_movers::help_with(std::shared_ptr<joint_job> job) {
  std::unique_lock lock{state_->mutex};
  state_->jobs.push_back(std::move(job));
  state_->announce(std::move(lock));
}

} // namespace ringmaster
