#pragma once

#include "messages/ids.hpp"
#include "messages/verdict.pb.h"

#include <deque>
#include <vector>

namespace ringmaster {

/// The verdicts of a communicator: numbers them, adds what was done about each, and keeps the latest.
///
///   found --open--> what is done is added --close: the next epoch is open, or the communicator has ended--> kept
///     +-------------note: nothing else is done----------------------------------------------------------------^
///
/// Pure: the caller says when. tests/runtime/health/verdict_log_test.cpp tries it in every order.
class verdict_log {
public:
  /// That are kept, of those that are complete.
  static constexpr size_t kept_max = 16;

  explicit verdict_log(communicator_id owner) : owner_(owner) {}

  /// More is done about this one. Returns it with its number.
  const proto::Verdict& open(proto::Verdict found);
  /// Nothing more is done. Returns it with its number.
  const proto::Verdict& note(proto::Verdict found);

  // What is done about all that are open.

  void note_failed(sequence_number operation);
  void note_spare(device_id spare);
  /// An epoch is open over this number of ranks, and these operations run again in it. Returns those that are complete.
  std::vector<proto::Verdict> close(epoch_number epoch, size_t ranks, const std::vector<sequence_number>& rerun);
  /// The communicator has ended.
  std::vector<proto::Verdict> close_at_end();

  bool any_open() const { return !open_.empty(); }
  /// Those that are complete, oldest first.
  const std::deque<proto::Verdict>& latest() const { return latest_; }
  /// The latest one that names this device as a culprit; null: none of those that are known.
  const proto::Verdict* about(device_id device) const;

private:
  void number(proto::Verdict& x);
  void keep(proto::Verdict x);
  std::vector<proto::Verdict> take_open();

  communicator_id owner_;
  uint64_t count_ = 0;
  std::vector<proto::Verdict> open_;
  std::deque<proto::Verdict> latest_;
};

} // namespace ringmaster
