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

/// What a COMMUNICATOR says that may gather for a moment: the plans of the calls that are in its mailbox together go
/// out as one message to each rank, records of one turn wake the journal once. Whoever waits for an answer may call on:
/// what he calls must come to the streams behind the plans, so the answer waits for them.
class outbox {
public:
  /// `journal` may be invalid. `enqueue_order` is held while plans go to the streams, so that all streams get the
  /// operations of communicators that share devices in one order, and none waits for the other in a circle.
  outbox(communicator_actor::pointer self, journal_actor journal, wall_clock clock,
         std::shared_ptr<std::mutex> enqueue_order)
    : self_(self), journal_(std::move(journal)), clock_(clock), enqueue_order_(std::move(enqueue_order)) {}

  uint64_t unix_ns() const { return clock_.unix_ns(self_->clock().now()); }
  void journal(proto::Record record);
  bool journals() const { return static_cast<bool>(journal_); }
  /// While records gather they go out by `flush_records` alone; when they end to, with the plans, if any are to go.
  void gather_records(bool on);
  void flush_records();

  /// The operation's plan.
  void add(proto::OperationPlan plan, const operation& op);
  /// Has `flush` asked for behind the calls that are in the mailbox already.
  void flush_later();
  bool flush_pending() const { return batch_.plans_size() > 0; }
  /// Whether all that has gathered may wait while earlier operations are under way: nobody waits for it, no rank would
  /// begin it earlier, and what is called meanwhile is walked as one with it.
  bool may_wait() const { return may_wait_; }
  /// It does: the next `flush_later` asks again.
  void wait();
  /// The first operation that has gathered, and the latest, where `flush_pending`.
  sequence_number first() const { return sequence_number{batch_.plans(0).sequence()}; }
  sequence_number latest() const { return sequence_number{batch_.plans(batch_.plans_size() - 1).sequence()}; }
  /// Has an answer given behind them.
  void when_flushed(std::function<void()> answer) { answers_.push_back(std::move(answer)); }
  /// Sends everything. `members`: their handles, in rank order; `ranks`: the same, as one speaks to them.
  /// Returns how many messages go to relays.
  size_t flush(device_handles members, const audience& ranks, operation_queue& operations, const fusing_limits& limits);

  /// One message that many share, instead of a copy for each.
  void tell(const caf::strong_actor_ptr& receiver, const caf::message& what) const;

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
