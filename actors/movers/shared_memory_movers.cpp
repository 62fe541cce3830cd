#include "actors/movers/shared_memory_movers.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace ringmaster {

struct shared_memory_movers::shared_state {
  std::atomic<uint64_t> changes{0}; ///< Jobs that came, lookers that left some, and the end.
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<size_t> jobs_there{0}; ///< So many of `jobs`.
  // Under the mutex:
  std::deque<std::shared_ptr<shared_memory_job>> jobs; ///< With slices that nobody may have taken yet.
  uint32_t sleeping = 0;
  bool ending = false;

  /// Under the lock, which is free again when others are woken: they would only find it taken.
  void announce(std::unique_lock<std::mutex> lock, bool wakes) {
    ++changes;
    const bool some_sleep = sleeping > 0;
    lock.unlock();
    if (some_sleep && wakes)
      changed.notify_all();
  }

  std::shared_ptr<shared_memory_job> first_job() {
    std::lock_guard guard{mutex};
    return jobs.empty() ? nullptr : jobs.front();
  }

  /// Nothing of it is left to take.
  void remove(const std::shared_ptr<shared_memory_job>& job) {
    std::lock_guard guard{mutex};
    std::erase(jobs, job);
    jobs_there = jobs.size();
  }

  /// Of the first job that has one left. Returns whether there was one.
  bool move_slice(uint32_t worker) {
    while (jobs_there > 0) {
      auto job = first_job();
      if (job == nullptr)
        break;
      if (job->move_slice(worker))
        return true;
      remove(job);
    }
    return false;
  }

  /// Lets go of jobs, and their memories, of which nothing is left to take. Returns whether there are others.
  bool tidy() {
    std::lock_guard guard{mutex};
    std::erase_if(jobs, [](auto& job) { return !job->has_slices(); });
    jobs_there = jobs.size();
    return !jobs.empty();
  }

  /// Returns whether there is to be more work than there was at `seen`, which is brought up to date.
  bool wait(uint64_t& seen) {
    constexpr auto limit = std::chrono::microseconds{50};
    if (!spin_until([&] { return changes != seen; }, limit)) {
      std::unique_lock lock{mutex};
      ++sleeping;
      changed.wait(lock, [&] { return changes != seen; });
      --sleeping;
    }
    std::lock_guard guard{mutex}; // the end is not among those seen, if it is not to be seen here
    seen = changes;
    return !ending;
  }

  void work(uint32_t worker) {
    for (uint64_t seen = 0; wait(seen);)
      while (move_slice(worker)) {
      }
  }
};

shared_memory_movers::shared_memory_movers(uint32_t threads) : state_(std::make_shared<shared_state>()) {
  for (uint32_t i = 0; i < threads; ++i)
    threads_.emplace_back([state = state_, i] { state->work(i + 1); });
}

shared_memory_movers::~shared_memory_movers() {
  {
    std::unique_lock lock{state_->mutex};
    state_->ending = true;
    state_->announce(std::move(lock), true);
  }
  for (auto& x : threads_)
    if (x.get_id() == std::this_thread::get_id())
      x.detach(); // it has let go of the last communicator
    else
      x.join();
}

void shared_memory_movers::help_with(std::shared_ptr<shared_memory_job> job) {
  std::unique_lock lock{state_->mutex};
  state_->jobs.push_back(std::move(job));
  state_->jobs_there = state_->jobs.size();
  state_->announce(std::move(lock), !has_enough_lookers());
}

bool shared_memory_movers::move_slice(uint32_t worker) {
  return state_->move_slice(worker);
}

void shared_memory_movers::wake_for_rest() {
  if (state_->jobs_there > 0 && state_->tidy())
    state_->announce(std::unique_lock{state_->mutex}, true);
}

namespace {

struct process_movers {
  std::mutex mutex;
  std::weak_ptr<shared_memory_movers> there; ///< Under the mutex.

  static process_movers& instance() {
    static process_movers result;
    return result;
  }
};

} // namespace

std::shared_ptr<shared_memory_movers> shared_memory_movers::of_this_process() {
  auto& its = process_movers::instance();
  std::lock_guard guard{its.mutex};
  return its.there.lock();
}

std::shared_ptr<shared_memory_movers> shared_memory_movers::begin_of_this_process() {
  constexpr uint32_t threads_max = 15;
  const auto processors = std::thread::hardware_concurrency();
  if (processors < 2) // one of them is for the communicator
    return nullptr;
  auto& its = process_movers::instance();
  std::lock_guard guard{its.mutex};
  auto result = its.there.lock();
  if (!result)
    its.there = result = std::make_shared<shared_memory_movers>(std::min(processors - 1, threads_max));
  return result;
}

} // namespace ringmaster
