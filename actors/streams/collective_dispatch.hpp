#pragma once

#include "messages/interfaces.hpp"
#include "runtime/invariants/ensure.hpp"

#include <cstddef>

namespace ringmaster {

class collective_command;
class stream_state;

/// The collectives in a stream's queue, and what their communicators say to a stream: plans, releases, epochs, and
/// questions about progress.
///
/// Shared-memory operations at the front of the queue *arrive* together: the stream waits at the first, and the
/// communicator hears only of the latest.
class collective_dispatch {
public:
  explicit collective_dispatch(stream_state& stream) : stream_(stream) {}

  void accept(const operation_orders& orders);
  void accept(const proto::Release& x);
  void accept(const proto::Quiesce& x);
  void accept(const proto::ProgressRequest& x);
  /// Completes what the device knows of its communicators, which are built again: what of their operations is in the
  /// queue, and what has ended. Messages of their present epochs are stale from then on.
  proto::Recalled recall(proto::Recalled of_device);
  /// Lets shared-memory operations arrive that can, and reports the latest.
  void announce();
  /// The head has left the queue, which is as long as this now.
  void note_head_gone(size_t queued) {
    arrived_ -= arrived_ > 0 ? 1 : 0;
    ensure(arrived_ <= queued, "only commands in the queue wait for other ranks");
  }

private:
  collective_command* find(communicator_id communicator, sequence_number sequence);
  /// Decided operations, of a communicator that was built again: their results are put in place.
  void put_in_place(const proto::Quiesce& x);
  void report_ended(const proto::Quiesce& x, const proto::DecidedOperation& op);
  /// These shared-memory operations are done.
  void release_arrived(const proto::Release& x);

  stream_state& stream_;
  size_t arrived_ = 0; ///< Commands at the front of the queue that wait for the other ranks.
};

} // namespace ringmaster
