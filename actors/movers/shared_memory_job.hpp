#pragma once

#include "messages/interfaces.hpp"
#include "runtime/operations/shared_memory_execution.hpp"

#include <atomic>
#include <memory>
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

} // namespace ringmaster
