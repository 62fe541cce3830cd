#pragma once

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <chrono>
#include <deque>
#include <thread>

namespace ringmaster {

/// Lets an actor with a thread of its own run those whom its messages wake, where it would only wait for their answer:
/// a worker of the scheduler that sleeps takes longer to wake than they have to do, and is one more thread on the way
/// back (leapfrogging: Wagner and Calder, Leapfrogging: a portable technique for implementing efficient futures, 1993;
/// here it runs what it has asked for and no other's work). Use: make it the actor's `context()`, send, `work`, put the
/// old context back.
///
/// CAF keeps an actor's latest execution unit: this must live as long as the actor system.
class helping_hand : public caf::execution_unit {
public:
  /// So long others' work may wait here while there is more of it, and the caller's own when it has come.
  static constexpr std::chrono::microseconds patience{1000}, own_patience{50};

  /// In the thread that will work.
  explicit helping_hand(caf::actor_system& system) : caf::execution_unit(&system) {}
  helping_hand(const helping_hand&) = delete;

  void exec_later(caf::resumable* job) override {
    if (std::this_thread::get_id() == thread_)
      jobs_.push_back(job);
    else // a blocking actor that was spawned here: CAF 0.17 sends in its spawner's name
      system().scheduler().enqueue(job);
  }

  /// Runs what is there and what comes of it, until nothing is left. When `patience` is over the scheduler gets what
  /// waits behind one that may take long; and all, when `come` holds for longer than `own_patience`.
  template <class Come>
  void work(const Come& come) {
    auto now = clock::now();
    const auto end = now + patience;
    for (auto came = clock::time_point::max(); !jobs_.empty(); now = clock::now()) {
      if (came == clock::time_point::max() && come())
        came = now;
      if (came != clock::time_point::max() && now - came >= own_patience)
        return hand_over(0);
      if (now >= end)
        hand_over(1);
      run_first();
    }
  }

private:
  using clock = std::chrono::steady_clock;

  void run_first() {
    auto* job = jobs_.front();
    jobs_.pop_front();
    if (job->resume(this, system().scheduler().max_throughput()) == caf::resumable::resume_later)
      jobs_.push_back(job);
    else
      intrusive_ptr_release(job);
  }

  /// All but the first so many.
  void hand_over(size_t kept) {
    while (jobs_.size() > kept) {
      system().scheduler().enqueue(jobs_.back());
      jobs_.pop_back();
    }
  }

  std::thread::id thread_ = std::this_thread::get_id();
  std::deque<caf::resumable*> jobs_;
};

} // namespace ringmaster
