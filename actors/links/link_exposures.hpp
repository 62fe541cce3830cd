#pragma once

#include "messages/transfer.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace ringmaster {

/// A block that other processes may fetch.
struct exposed_block {
  device_window window;
  std::atomic<bool> withdrawn{false}; ///< No new frame of it is started; memory that a frame is sent from stays mapped.
  std::atomic<bool> damaged{false};   ///< The system could not read it.
  std::atomic<uint64_t> frames{0};    ///< Sent, or begun.
};

/// The blocks of this process's devices that are on offer to other processes. Thread-safe.
class link_exposures {
public:
  void add(const transfer_key& key, std::shared_ptr<exposed_block> block);
  /// Only if it is still this one.
  void remove(const transfer_key& key, const exposed_block& block);
  /// Null: it is not on offer.
  std::shared_ptr<exposed_block> find(const transfer_key& key, device_id device) const;

private:
  mutable std::mutex mutex_;
  std::map<transfer_key, std::shared_ptr<exposed_block>> blocks_;
};

/// While it lives, others may fetch the block.
class link_exposure {
public:
  link_exposure(std::shared_ptr<link_exposures> all, const transfer_key& key, const device_window& window);
  ~link_exposure();
  link_exposure(const link_exposure&) = delete;
  link_exposure& operator=(const link_exposure&) = delete;

  /// Grows while it is fetched.
  uint64_t frames() const { return block_->frames; }

private:
  std::shared_ptr<link_exposures> all_;
  transfer_key key_;
  std::shared_ptr<exposed_block> block_;
};

} // namespace ringmaster
