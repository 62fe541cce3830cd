#pragma once

#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/local_actor.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace ringmaster {

/// Lets an actor with a thread of its own run those whom its messages wake, where it would only wait for their answer:
/// a worker of the scheduler that sleeps takes longer to wake than they have to do, and is one more thread on the way
/// back (leapfrogging: Wagner and Calder, Leapfrogging: a portable technique for implementing efficient futures, 1993;
/// here it runs the actors that its own messages wake, with whatever else they have been sent by then).
class helping_hand : public caf::execution_unit {
public:
  /// So long others' work may wait here while there is more of it, and the caller's own when it has come.
  static constexpr std::chrono::microseconds patience{1000}, own_patience{50};

  /// The actors that `say` sends to, and those that they send to, run in this thread until none has a message left.
  /// When `patience` is over the scheduler gets what waits behind one that may take long; and all, when `come` holds
  /// for longer than `own_patience`: both are looked at when one has had its turn.
  template <class Say, class Come>
  static void help(caf::local_actor* self, const Say& say, const Come& come) {
    scope here{self};
    say();
    here.work(come);
  }

  /// An actor that was run here keeps this as its unit, and a blocking one that it has spawned sends by it from its own
  /// thread.
  void exec_later(caf::resumable* job) override {
    if (jobs_here != nullptr)
      jobs_here->push_back(job);
    else
      system().scheduler().enqueue(job);
  }

private:
  using clock = std::chrono::steady_clock;
  using job_queue = std::deque<caf::resumable*>;

  explicit helping_hand(caf::actor_system& system) : caf::execution_unit(&system) {}

  /// Lives as long as the process, since actors keep it: one for all systems that ever lie in this place.
  static helping_hand& of(caf::actor_system& system) {
    static std::mutex mutex;
    static std::map<caf::actor_system*, std::unique_ptr<helping_hand>> all;
    std::lock_guard lock{mutex};
    auto& result = all[&system];
    if (!result)
      result.reset(new helping_hand{system});
    return *result;
  }

  class scope {
  public:
    explicit scope(caf::local_actor* self) : self_(self), own_(self->context()), hand_(of(self->system())) {
      self_->context(&hand_);
      jobs_here = &jobs_;
    }
    scope(const scope&) = delete;
    ~scope() {
      hand_over(0);
      jobs_here = nullptr;
      self_->context(own_);
    }

    template <class Come>
    void work(const Come& come) {
      auto now = clock::now();
      const auto end = now + patience;
      for (auto came = clock::time_point::max(); !jobs_.empty(); now = clock::now()) {
        if (came == clock::time_point::max() && come())
          came = now;
        if (came != clock::time_point::max() && now - came >= own_patience)
          return;
        if (now >= end)
          hand_over(1);
        run_first();
      }
    }

  private:
    void run_first() {
      constexpr size_t messages = 16; // of one turn, in each of which a communicator may move data for 0.2 ms
      auto* job = jobs_.front();
      jobs_.pop_front();
      if (job->resume(&hand_, messages) == caf::resumable::resume_later)
        jobs_.push_back(job);
      else
        intrusive_ptr_release(job);
    }

    /// All except the first ones.
    void hand_over(size_t kept) {
      while (jobs_.size() > kept) {
        auto* job = jobs_[kept];
        jobs_.erase(jobs_.begin() + static_cast<ptrdiff_t>(kept));
        hand_.system().scheduler().enqueue(job);
      }
    }

    caf::local_actor* self_;
    caf::execution_unit* own_;
    helping_hand& hand_;
    job_queue jobs_;
  };

  static inline thread_local job_queue* jobs_here = nullptr; ///< Of the thread that helps; null: this one does not.
};

} // namespace ringmaster
