#pragma once

#include "actors/training/interfaces.hpp"
#include "runtime/memory/mapped_memory.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace ringmaster::training {

/// The memory that a rank has on its device: found at the coordinator, mapped, allocated, and freed when the rank
/// leaves. Lives in the RANK.
class rank_memory {
public:
  using answer = std::function<void(const caf::error&)>;

  /// `bytes`: 0: all of the device. `limit`: for each answer.
  rank_memory(rank_actor::pointer self, coordinator_actor coordinator, device_id device, uint64_t bytes,
              caf::timespan limit)
    : self_(self), coordinator_(std::move(coordinator)), device_(device), wanted_(bytes), limit_(limit) {}
  rank_memory(const rank_memory&) = delete;

  /// `then` gets none when the memory is allocated. The device is monitored from then on. Errors: device_lost;
  /// unreachable, if its memory cannot be mapped; out_of_memory.
  void allocate(answer then);
  /// Nothing before it is allocated.
  std::span<std::byte> bytes() const { return bytes_; }
  uint64_t address() const { return address_; } ///< Of the first byte, on the device.

  /// `done` is called when the memory is free, or cannot be freed.
  void free(std::function<void()> done);
  /// Nothing can be freed any longer.
  void coordinator_lost();
  void stop_monitoring();

private:
  void found(const device_handle& x);
  /// The memory file may be missing because the device is lost, which may not have been reported yet.
  void not_reached(const caf::error& why);
  /// `all`: bytes of the device.
  void request(uint64_t all);
  void allocated(const gpu_sim::MemAddr& at, uint64_t bytes);
  void freed();

  rank_actor::pointer self_;
  coordinator_actor coordinator_;
  device_id device_;
  uint64_t wanted_;
  caf::timespan limit_;
  answer ready_;
  caf::actor_addr monitored_; ///< The device.
  bool coordinator_gone_ = false;
  std::shared_ptr<mapped_memory> memory_;
  std::span<std::byte> bytes_;
  uint64_t address_ = 0;
  std::function<void()> done_; ///< Set while the coordinator is to free the memory.
};

} // namespace ringmaster::training
