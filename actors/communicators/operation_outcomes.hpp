#pragma once

#include "runtime/health/watch.hpp"
#include "runtime/operations/operation.hpp"
#include "runtime/operations/rank_calls.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace ringmaster {

/// How the operations of a communicator have ended: counts, and the error of the latest batch until the host has heard
/// of it. Pure: the caller passes the time in.
class operation_outcomes {
public:
  using time_point = watch::time_point;

  /// A call is made while nothing is in flight, or by the host. Returns whether it is the first of a new batch.
  bool start_batch(bool by_host) {
    const bool is_new = !host_waits_;
    if (is_new) {
      error_ = {};
      ++batch_;
    }
    host_waits_ = host_waits_ || by_host;
    return is_new;
  }
  /// The host was sent the status of the batch.
  void note_reported(bool in_progress) { host_waits_ = host_waits_ && in_progress; }

  void note_ended(const operation& op, bool of_batch, time_point now) {
    ensure(now >= ended_at_, "time does not run backwards");
    ended_at_ = now;
    ++(op.error ? failed_ : succeeded_);
    if (op.error && of_batch)
      error_ = op.error;
    if (!op.error) {
      latest_ = op.sequence;
      latest_kind_ = op.what().kind();
    }
  }

  /// The number of the latest batch, from 1 on.
  uint64_t batch() const { return batch_; }
  /// After a restart of the coordinator. `why`: the batch has failed, and the host may not have heard of it.
  void restore(uint64_t batch, bool host_waits, const caf::error& why) {
    batch_ = batch;
    host_waits_ = host_waits;
    error_ = why;
  }

  /// These calls of the host, which have numbers, will never run.
  void note_lost(const caf::error& why, uint64_t calls) {
    error_ = why;
    failed_ += calls;
    host_waits_ = true;
  }

  const caf::error& error() const { return error_; } ///< Of the latest batch.
  uint64_t succeeded() const { return succeeded_; }
  uint64_t failed() const { return failed_; }
  bool any_ended() const { return succeeded_ + failed_ > 0; }
  time_point ended_at() const { return ended_at_; } ///< The latest operation.
  /// "it last finished all_reduce #17"
  std::string latest_text() const {
    return latest_ == sequence_number{} ? std::string{"no operation has ended yet"}
                                        : fmt::format("it last finished {} #{}", name_of(latest_kind_), latest_);
  }

private:
  caf::error error_;
  uint64_t batch_ = 0;
  bool host_waits_ = false; ///< The host has called, and was not told how it ended.
  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
  time_point ended_at_;
  sequence_number latest_; ///< That ended well; 0: none.
  proto::CollectiveKind latest_kind_ = proto::ALL_REDUCE;
};

} // namespace ringmaster
