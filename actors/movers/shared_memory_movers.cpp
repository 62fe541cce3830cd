#include "actors/movers/shared_memory_movers.hpp"

#include "actors/calls/spin.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace ringmaster {

shared_memory_job::shared_memory_job(shared_memory_operation operation, uint64_t slice_bytes,
                                     std::vector<std::shared_ptr<mapped_memory>> memories, uint32_t workers,
                                     communicator_actor owner, uint64_t number)
  : execution_(std::move(operation), slice_bytes), memories_(std::move(memories)), shares_(workers),
    owner_(std::move(owner)), number_(number) {
  ensure(workers > 0, "the owner is a worker");
  for (uint32_t i = 0; i < workers; ++i) {
    shares_[i].next = static_cast<uint32_t>(uint64_t{slices()} * i / workers);
    shares_[i].end = static_cast<uint32_t>(uint64_t{slices()} * (i + 1) / workers);
  }
}

bool shared_memory_job::has_slices() const noexcept {
  return std::ranges::any_of(shares_, [](auto& its) { return its.next < its.end; });
}

bool shared_memory_job::move_slice(uint32_t worker) noexcept {
  for (uint32_t i = 0; i < shares_.size(); ++i) {
    auto& its = shares_[(worker + i) % shares_.size()];
    if (its.next >= its.end) // checked first: each increment counts, and must not overflow
      continue;
    auto slice = its.next++;
    if (slice >= its.end)
      continue;
    execution_.run(slice);
    const auto moved = ++moved_;
    ensure(moved <= slices(), "a slice is moved once");
    if (moved == slices() && owner_waits_)
      caf::anon_send(owner_, atom::resume_v, number_);
    return true;
  }
  return false;
}

bool shared_memory_job::wait() {
  constexpr auto limit = std::chrono::microseconds{50};
  auto all_moved = [this] { return moved_ == slices(); };
  if (spin_until(all_moved, limit))
    return true;
  owner_waits_ = true; // the worker that moves the last slice sees this, or has moved it before the next line
  return all_moved();
}

struct shared_memory_movers::shared_state {
  std::atomic<uint64_t> changes{0}; ///< New jobs, pollers that left slices, and the end.
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<size_t> job_count{0}; ///< The size of `jobs`.
  // Under the mutex:
  std::deque<std::shared_ptr<shared_memory_job>> jobs; ///< Those that may have slices left.
  uint32_t sleeping = 0;
  bool ending = false;

  /// Called with the lock, which is released before other threads are woken: they need it.
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

  /// No slice of it is left to take.
  void remove(const std::shared_ptr<shared_memory_job>& job) {
    std::lock_guard guard{mutex};
    std::erase(jobs, job);
    job_count = jobs.size();
  }

  /// Moves a slice of the first job that has one left. Returns whether there was one.
  bool move_slice(uint32_t worker) {
    while (job_count > 0) {
      auto job = first_job();
      if (job == nullptr)
        break;
      if (job->move_slice(worker))
        return true;
      remove(job);
    }
    return false;
  }

  /// Drops jobs, and their memories, of which no slice is left to take. Returns whether there are others.
  bool tidy() {
    std::lock_guard guard{mutex};
    std::erase_if(jobs, [](auto& job) { return !job->has_slices(); });
    job_count = jobs.size();
    return !jobs.empty();
  }

  /// Waits for changes after `seen`, which is updated. Returns false at the end.
  bool wait(uint64_t& seen) {
    constexpr auto limit = std::chrono::microseconds{50};
    if (!spin_until([&] { return changes != seen; }, limit)) {
      std::unique_lock lock{mutex};
      ++sleeping;
      changed.wait(lock, [&] { return changes != seen; });
      --sleeping;
    }
    std::lock_guard guard{mutex}; // `seen` counts the end only if `ending` is read as true
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
  ensure(threads > 0, "movers have threads");
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
      x.detach(); // this thread has destroyed the last communicator
    else
      x.join();
}

void shared_memory_movers::help_with(std::shared_ptr<shared_memory_job> job) {
  ensure(job != nullptr, "a job has data to move");
  std::unique_lock lock{state_->mutex};
  state_->jobs.push_back(std::move(job));
  state_->job_count = state_->jobs.size();
  state_->announce(std::move(lock), !has_enough_pollers());
}

bool shared_memory_movers::move_slice(uint32_t worker) {
  return state_->move_slice(worker);
}

void shared_memory_movers::wake_for_rest() {
  if (state_->job_count > 0 && state_->tidy())
    state_->announce(std::unique_lock{state_->mutex}, true);
}

namespace {

struct process_movers {
  std::mutex mutex;
  std::weak_ptr<shared_memory_movers> movers; ///< Under the mutex.

  static process_movers& instance() {
    static process_movers result;
    return result;
  }
};

} // namespace

std::shared_ptr<shared_memory_movers> shared_memory_movers::of_this_process() {
  auto& its = process_movers::instance();
  std::lock_guard guard{its.mutex};
  return its.movers.lock();
}

std::shared_ptr<shared_memory_movers> shared_memory_movers::begin_of_this_process() {
  constexpr uint32_t threads_max = 15;
  const auto processors = std::thread::hardware_concurrency();
  if (processors < 2) // one is for the communicator
    return nullptr;
  auto& its = process_movers::instance();
  std::lock_guard guard{its.mutex};
  auto result = its.movers.lock();
  if (!result)
    its.movers = result = std::make_shared<shared_memory_movers>(std::min(processors - 1, threads_max));
  return result;
}

} // namespace ringmaster
