#pragma once

#include <caf/policy/work_stealing.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ringmaster {

/// How CAF's workers find work here. As by CAF's own policy "stealing" each has a queue, and takes from another's when
/// its own is empty (Blumofe and Leiserson, Scheduling multithreaded computations by work stealing, 1999). But one that
/// finds nothing sleeps until it is woken, where CAF's look again every 10 ms each: an idle process uses no processor
/// time. Who wakes them:
///
/// - What comes from outside (connections, timers, a program's threads) goes to a worker that sleeps; where none does,
///   behind what a busy one has. So does what CAF 0.17 passes off as a worker's own: a detached blocking actor keeps
///   the worker that spawned it as its execution unit, and sends from its own thread in that one's name.
/// - An actor's message to another stays on its worker, which costs no thread switch. A worker that has had more to do
///   than it could for `patience` wakes another, which takes from it.
/// - A worker may also be held up by what it runs. So one of those that sleep is the lookout: it looks into all queues
///   every `look_every`, until all have slept for `looks_max` of them.
///
/// Who is woken for a job is notified when the lock is free again: on few cores he runs at once, in his waker's place,
/// and would only find it taken.
class parking_policy : public caf::policy::work_stealing {
public:
  static constexpr std::chrono::microseconds patience{100};
  static constexpr std::chrono::milliseconds look_every{10};
  static constexpr int looks_max = 1;

  /// Of all workers.
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}

    std::mutex lock; ///< Of what is here, and of who is to wake; never held while something is run.
    std::vector<size_t>
      asleep; ///< Workers, by number. The first is the lookout, if there is one; the last wakes first.
    bool has_lookout = false;
    size_t next_worker = 0;          ///< That gets what comes from outside while all are busy.
    std::atomic<size_t> sleepers{0}; ///< How many are asleep, to be looked at without the lock.
  };

  /// Of one.
  struct worker_data : caf::policy::work_stealing::worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator* p) : caf::policy::work_stealing::worker_data(p) {}
    worker_data(const worker_data& other) : caf::policy::work_stealing::worker_data(other) {}

    /// Outlives the worker: a notification may come late.
    std::shared_ptr<std::condition_variable> wake = std::make_shared<std::condition_variable>();
    bool is_to_wake = false, is_to_look = false;
    std::chrono::steady_clock::time_point busy_since{}; ///< Or since it has woken another one.
  };

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* job) {
    auto& all = self->data();
    std::unique_lock guard{all.lock};
    if (all.asleep.empty())
      return self->worker_by_id(all.next_worker++ % self->num_workers())->data().queue.append(job);
    self->worker_by_id(all.asleep.back())->data().queue.append(job);
    auto woken = wake_latest(self);
    guard.unlock();
    woken->notify_one();
  }

  /// To a certain worker: CAF does so when it shuts down.
  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* job) {
    auto& all = self->parent()->data();
    std::unique_lock guard{all.lock};
    self->data().queue.append(job);
    if (std::find(all.asleep.begin(), all.asleep.end(), self->id()) != all.asleep.end()) {
      self->data().is_to_wake = true;
      self->data().wake->notify_one();
    }
  }

  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* job) {
    if (this_worker == self)
      self->data().queue.prepend(job);
    else
      central_enqueue(self->parent(), job);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    this_worker = self;
    if (auto job = self->data().queue.take_head()) {
      ask_for_help(self);
      return job;
    }
    for (;;) {
      if (auto job = search(self))
        return job;
      if (auto job = sleep(self))
        return job;
    }
  }

private:
  static inline thread_local const void* this_worker = nullptr; ///< Whose thread this is; null: no worker's.

  /// As CAF does before its workers pause for the first time.
  template <class Worker>
  caf::resumable* search(Worker* self) {
    auto& how = self->data().strategies[0];
    for (size_t i = 0; i < how.attempts; i += how.step_size) {
      if (auto job = self->data().queue.take_head())
        return job;
      if (i % how.steal_interval == 0)
        if (auto job = try_steal(self))
          return job;
    }
    return nullptr;
  }

  template <class Worker>
  void ask_for_help(Worker* self) {
    auto& all = self->parent()->data();
    auto& own = self->data();
    if (all.sleepers.load(std::memory_order_relaxed) == 0 || own.queue.empty())
      return;
    auto now = std::chrono::steady_clock::now();
    if (now - own.busy_since < patience)
      return;
    own.busy_since = now;
    std::unique_lock guard{all.lock};
    if (all.asleep.empty())
      return;
    auto woken = wake_latest(self->parent());
    guard.unlock();
    woken->notify_one();
  }

  /// Returns what the lookout has found, else nothing, when it is to wake.
  template <class Worker>
  caf::resumable* sleep(Worker* self) {
    auto& all = self->parent()->data();
    auto& own = self->data();
    std::unique_lock guard{all.lock};
    if (!own.queue.empty())
      return nullptr;
    all.asleep.insert(all.has_lookout ? all.asleep.end() : all.asleep.begin(), self->id());
    own.is_to_look = !std::exchange(all.has_lookout, true);
    all.sleepers.store(all.asleep.size(), std::memory_order_relaxed);
    caf::resumable* found = nullptr;
    while (!own.is_to_wake && found == nullptr) {
      own.wake->wait(guard, [&] { return own.is_to_wake || own.is_to_look; });
      found = look_out(self, guard);
    }
    own.is_to_wake = false;
    leave(self->parent(), self->id());
    own.busy_since = std::chrono::steady_clock::now();
    return found;
  }

  /// Until it is woken, has found a job, or need not look.
  template <class Worker>
  caf::resumable* look_out(Worker* self, std::unique_lock<std::mutex>& guard) {
    auto& all = self->parent()->data();
    auto& own = self->data();
    for (int looks = 0; looks < looks_max; ++looks) {
      if (own.wake->wait_for(guard, look_every, [&] { return own.is_to_wake; }))
        return nullptr;
      for (size_t worker = 0; worker < self->parent()->num_workers(); ++worker)
        if (auto job = self->parent()->worker_by_id(worker)->data().queue.take_tail())
          return job;
      if (all.asleep.size() < self->parent()->num_workers())
        looks = 0;
    }
    own.is_to_look = all.has_lookout = false;
    return nullptr;
  }

  /// The one that has slept for the shortest time is to; it must be notified.
  template <class Coordinator>
  static std::shared_ptr<std::condition_variable> wake_latest(Coordinator* self) {
    const auto number = self->data().asleep.back();
    auto& latest = self->worker_by_id(number)->data();
    latest.is_to_wake = true;
    leave(self, number);
    return latest.wake;
  }

  /// It is no longer asleep. If no worker is the lookout then, the one that has slept longest becomes it.
  template <class Coordinator>
  static void leave(Coordinator* self, size_t worker) {
    auto& all = self->data();
    if (std::erase(all.asleep, worker) == 0)
      return;
    all.sleepers.store(all.asleep.size(), std::memory_order_relaxed);
    if (std::exchange(self->worker_by_id(worker)->data().is_to_look, false))
      all.has_lookout = false;
    if (all.asleep.empty() || std::exchange(all.has_lookout, true))
      return;
    auto& first = self->worker_by_id(all.asleep.front())->data();
    first.is_to_look = true;
    first.wake->notify_one();
  }
};

} // namespace ringmaster
