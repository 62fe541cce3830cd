#pragma once

#include "actors/calls/wall_clock.hpp"
#include "actors/communicators/audience.hpp"
#include "messages/interfaces.hpp"
#include "runtime/operations/fusing.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ringmaster {

/// Messages of a COMMUNICATOR that are gathered for a moment: the plans of calls that are in its mailbox together are
/// sent as one message to each rank, and records of one turn as one message to the journal. An answer to a call is held
/// until the plans are sent: a caller that has the answer may call again, and that plan must come to the streams later.
class outbox {
public:
  /// `journal` may be invalid. `enqueue_order` is locked while plans are sent to the streams: all streams get the
  /// operations of communicators that share devices in the same order, so no two of them wait for each other.
  outbox(communicator_actor::pointer self, journal_actor journal, wall_clock clock,
         std::shared_ptr<std::mutex> enqueue_order)
    : self_(self), journal_(std::move(journal)), clock_(clock), enqueue_order_(std::move(enqueue_order)) {}

  uint64_t unix_ns() const { return clock_.unix_ns(self_->clock().now()); }
  void journal(proto::Record record);
  bool journals() const { return static_cast<bool>(journal_); }
  /// While on, records are sent by `flush_records` only. When switched off they are sent, together with plans that
  /// wait.
  void gather_records(bool on);
  void flush_records();

  void add(proto::OperationPlan plan, const operation& op);
  /// Sends the message `flush`, which comes after the calls that are in the mailbox already.
  void flush_later();
  bool flush_pending() const { return batch_.plans_size() > 0; }
  /// All gathered plans may wait while earlier operations are in flight: no caller waits for them, no rank would start
  /// them earlier, and later calls are walked as one with them.
  bool may_wait() const { return may_wait_; }
  /// They wait: the next `flush_later` sends `flush` again.
  void wait();
  /// The first operation that has gathered, and the latest, where `flush_pending`.
  sequence_number first() const { return sequence_number{batch_.plans(0).sequence()}; }
  sequence_number latest() const { return sequence_number{batch_.plans(batch_.plans_size() - 1).sequence()}; }
  /// `answer` is called when the plans have been sent.
  void when_flushed(std::function<void()> answer) { answers_.push_back(std::move(answer)); }
  /// Sends everything. `members`: their handles, in rank order; `ranks`: their streams. Returns the number of messages
  /// to relays.
  size_t flush(device_handles members, const audience& ranks, operation_queue& operations, const fusing_limits& limits);

  /// Sends a message that receivers share, instead of a copy for each.
  void send_shared(const caf::strong_actor_ptr& receiver, const caf::message& what) const;

private:
  communicator_actor::pointer self_;
  journal_actor journal_;
  wall_clock clock_;
  std::shared_ptr<std::mutex> enqueue_order_;
  proto::OperationBatch batch_;
  bool may_fuse_ = false; ///< The batch has plans of groups, of calls that may wait, or that were fused before.
  bool may_wait_ = false; ///< It has no others.
  bool flush_asked_ = false;
  bool gathering_ = false;
  proto::Records records_;
  std::vector<std::function<void()>> answers_;
};

} // namespace ringmaster
