#pragma once

#include "actors/calls/spin.hpp"
#include "messages/interfaces.hpp"
#include "runtime/operations/shared_memory_execution.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ringmaster {

/// One operation's data, which several workers move: its owner, a COMMUNICATOR, is worker 0, then come the threads of a
/// `shared_memory_movers`, and ranks that help while they wait. Each worker has a run of neighbouring slices, so that a
/// thread moves the same memory in the next operation on the same buffers, and helps the others when it is done.
class shared_memory_job {
public:
  /// `slice_bytes`: about what one slice touches. `memories` stay mapped until the job is destroyed.
  shared_memory_job(shared_memory_operation operation, uint64_t slice_bytes,
                    std::vector<std::shared_ptr<mapped_memory>> memories, uint32_t workers, communicator_actor owner,
                    uint64_t number);

  /// Moves a slice that no worker has taken. Returns whether there was one. An exception ends the process: a slice that
  /// is taken and not moved would keep its communicator waiting for ever.
  bool move_slice(uint32_t worker) noexcept;
  /// Whether a slice is left that no worker has taken.
  bool has_slices() const noexcept;

  /// For the owner, when no slice is left to take: waits about as long as a slice takes. Returns whether all are moved;
  /// if not, the owner is sent `resume` with the job's number once they are.
  bool wait();

  uint32_t slices() const noexcept { return execution_.slices(); }
  uint32_t slices_moved() const noexcept { return moved_; }

private:
  /// A worker's slices, from the next one that is not taken.
  struct alignas(64) share {
    std::atomic<uint32_t> next{0};
    uint32_t end = 0;
  };

  shared_memory_execution execution_;
  std::vector<std::shared_ptr<mapped_memory>> memories_;
  std::vector<share> shares_; ///< By worker.
  std::atomic<uint32_t> moved_{0};
  std::atomic<bool> owner_waits_{false};
  communicator_actor owner_;
  uint64_t number_;
};

/// The threads of a process that help its communicators move data. They are no actors: after a job they poll for the
/// next one for a moment, since operations rarely come alone, and then sleep; an actor that polls would block a worker
/// of the scheduler. A communicator works without them: it moves what they do not. A thread of a rank that waits may
/// help meanwhile, and then need not be woken nor share its core with one of these. Thread-safe. Shared by
/// communicators, their options, and ranks that help; the last owner may be one of its own threads.
class shared_memory_movers {
public:
  /// `threads` > 0
  explicit shared_memory_movers(uint32_t threads);
  shared_memory_movers(const shared_memory_movers&) = delete;
  shared_memory_movers& operator=(const shared_memory_movers&) = delete;
  /// Waits until the jobs' slices that have been taken are moved.
  ~shared_memory_movers();

  uint32_t threads() const noexcept { return static_cast<uint32_t>(threads_.size()); }
  /// The threads take slices of the job as workers 1 to `threads()`, once no earlier job has slices left. Threads that
  /// sleep are woken unless the same number of others polls for work.
  void help_with(std::shared_ptr<shared_memory_job> job);

  /// Waits for a condition as `spin_until` does, and moves slices while there are any, also beyond the limit. Returns
  /// whether the condition holds.
  template <class Condition>
  bool help_until(const Condition& holds, std::chrono::nanoseconds limit) {
    const poller here{*this};
    return spin_until(
      [&] {
        while (!holds())
          if (!move_slice(here.worker))
            return false;
        return true;
      },
      limit);
  }
  /// Whether enough threads of ranks poll for work now, so that none needs to be woken.
  bool has_enough_pollers() const noexcept { return pollers_ >= threads(); }

  /// The movers of this process's communicators; null: there are none.
  static std::shared_ptr<shared_memory_movers> of_this_process();
  /// The same, started if there are none: one thread for each processor but one, 15 at most, since memory is rarely
  /// faster for more; null on one processor.
  static std::shared_ptr<shared_memory_movers> begin_of_this_process();

private:
  struct shared_state;

  /// While it exists one more thread polls for work. The slices that it leaves are for the others.
  struct poller {
    explicit poller(shared_memory_movers& at) : movers(at), worker(at.pollers_++ % at.threads() + 1) {}
    poller(const poller&) = delete;
    ~poller() {
      --movers.pollers_;
      movers.wake_for_rest();
    }
    shared_memory_movers& movers;
    uint32_t worker;
  };

  /// Moves a slice of the first job that has one left. Returns whether there was one.
  bool move_slice(uint32_t worker);
  void wake_for_rest();

  std::atomic<uint32_t> pollers_{0};

  std::shared_ptr<shared_state> state_;
  std::vector<std::thread> threads_;
};

} // namespace ringmaster
