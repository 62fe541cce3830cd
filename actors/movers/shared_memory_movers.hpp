#pragma once

#include "actors/calls/spin.hpp"
#include "actors/movers/shared_memory_job.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ringmaster {

/// The threads of a process that help its communicators move data. They are no actors: they look again
/// and again for a moment, since one operation rarely comes alone, and sleep when nothing comes; an actor that did so
/// would keep a worker of the scheduler from everybody else. A communicator needs none: it moves
/// what they do not. A thread that waits for something else, a rank's, may help meanwhile: then it need not be woken,
/// nor share its core with one of these. Thread-safe. Shared by communicators, their options, and ranks
/// that help; whoever lets go last may be one of its own threads.
class shared_memory_movers {
public:
  /// `threads` > 0
  explicit shared_memory_movers(uint32_t threads);
  shared_memory_movers(const shared_memory_movers&) = delete;
  shared_memory_movers& operator=(const shared_memory_movers&) = delete;
  /// Waits until the jobs' slices that have been taken are moved.
  ~shared_memory_movers();

  uint32_t threads() const noexcept { return static_cast<uint32_t>(threads_.size()); }
  /// Has the threads take slices of the job as workers 1 to `threads()`, at once where no earlier job has any left.
  /// Those that sleep are woken unless as many others look for work.
  void help_with(std::shared_ptr<shared_memory_job> job);

  /// Looks for what shall come as `spin_until` does, and moves slices while there are any, also beyond the limit.
  /// Returns whether it came.
  template <class Condition>
  bool help_until(const Condition& come, std::chrono::nanoseconds limit) {
    const looker here{*this};
    return spin_until(
      [&] {
        while (!come())
          if (!move_slice(here.worker))
            return false;
        return true;
      },
      limit);
  }
  /// Whether so many do so just now that no thread needs to be woken.
  bool has_enough_lookers() const noexcept { return lookers_ >= threads(); }

  /// Those of this process's communicators; null: nobody holds any.
  static std::shared_ptr<shared_memory_movers> of_this_process();
  /// The same, begun if there are none: one thread for each processor but one, 15 at most, since memory is rarely
  /// faster for more; null where there is one processor.
  static std::shared_ptr<shared_memory_movers> begin_of_this_process();

private:
  struct shared_state;

  /// While it lives one more thread looks for work. What it leaves is the others'.
  struct looker {
    explicit looker(shared_memory_movers& at) : movers(at), worker(at.lookers_++ % at.threads() + 1) {}
    looker(const looker&) = delete;
    ~looker() {
      --movers.lookers_;
      movers.wake_for_rest();
    }
    shared_memory_movers& movers;
    uint32_t worker;
  };

  /// Of the first job that has one left. Returns whether there was one.
  bool move_slice(uint32_t worker);
  void wake_for_rest();

  std::atomic<uint32_t> lookers_{0};

  std::shared_ptr<shared_state> state_;
  std::vector<std::thread> threads_;
};

} // namespace ringmaster
