#pragma once

#include "messages/transfer.hpp"
#include "runtime/links/link_frames.hpp"
#include "runtime/reduction/block_sink.hpp"

#include <caf/error.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace ringmaster {

/// A block that is being fetched from another process. Who wants it and the I/O thread share it:
///
///   running -> done
///           -> gone          it is no longer on offer: the reason is on its way
///           -> damaged       its owner cannot read it
///           -> unreachable   the rest, `missing`, may come by another way
///
/// The caller of `revoke` may reuse the memory that it is written to as soon as `revoke` returns: the I/O thread
/// writes a slice at a time (a frame at most), under a lock.
class link_fetch {
public:
  enum class outcome : uint8_t { running, done, gone, damaged, unreachable };

  /// A range of the block, which comes over one connection, in order.
  struct part {
    uint64_t end = 0;
    uint64_t next = 0; ///< What has arrived is before it.
  };

  /// `on_end` is called by the I/O thread when it has ended. An empty block is not fetched.
  link_fetch(const transfer_key& key, device_id device, const block_sink& sink, uint64_t bytes,
             std::function<void()> on_end);

  const transfer_key& key() const { return key_; }
  device_id device() const { return device_; }
  uint64_t bytes() const { return bytes_; }
  uint32_t unit() const { return unit_; }
  bool is_plain() const { return plain_; }

  /// From now on nothing is written, and nothing reported.
  void revoke();
  outcome state() const;
  /// Where it has ended otherwise than done.
  caf::error why() const;
  /// What has not arrived of a fetch that has ended.
  std::vector<byte_range> missing() const;
  /// Grows while bytes arrive.
  uint64_t pieces() const { return pieces_; }

  // -- for the I/O thread --

  /// Writes a slice, unless it was revoked; returns whether it was not.
  template <class F>
  bool write(F&& f) {
    std::lock_guard guard{mutex_};
    if (revoked_)
      return false;
    f(static_cast<const block_sink&>(sink_));
    ++pieces_;
    return true;
  }
  bool running() const { return state() == outcome::running; }
  /// Whether its bytes are still wanted: it runs, and was not revoked.
  bool wanted() const {
    std::lock_guard guard{mutex_};
    return !revoked_;
  }
  void end(outcome how, caf::error why = {});

  std::vector<part> parts; ///< The I/O thread's alone.

private:
  const transfer_key key_;
  const device_id device_;
  const uint64_t bytes_;
  const uint32_t unit_;
  const bool plain_;
  std::atomic<uint64_t> pieces_{0};
  mutable std::mutex mutex_;
  block_sink sink_;
  bool revoked_ = false;
  outcome state_ = outcome::running;
  caf::error why_;
  std::vector<byte_range> missing_;
  std::function<void()> on_end_;
};

} // namespace ringmaster
