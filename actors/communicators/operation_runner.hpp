#pragma once

#include "actors/communicators/call_limits.hpp"
#include "actors/communicators/member_directory.hpp"
#include "actors/communicators/member_watch.hpp"
#include "actors/communicators/operation_outcomes.hpp"
#include "actors/communicators/operation_planner.hpp"
#include "actors/communicators/outbox.hpp"
#include "runtime/epochs/communicator_recovery.hpp"
#include "runtime/epochs/epoch_change.hpp"

#include <map>
#include <utility>
#include <vector>

namespace ringmaster {

/// Runs the operations of a communicator, from the call to the end: makes an operation of each request and numbers it,
/// sends the ranks' streams its plan once it may start, and again in each new epoch, and notes how it ended. The
/// journal hears of each of these.
class operation_runner {
public:
  operation_runner(communicator_actor::pointer self, const communicator_options& options, epoch_change& epochs,
                   member_directory& members, member_watch& watch, call_limits& limits, outbox& out)
    : self_(self), options_(options), epochs_(epochs), members_(members), watch_(watch), limits_(limits), out_(out),
      planner_(options) {}

  // -- calls. Errors of all: group_misuse, or that of a communicator that has ended --

  caf::error open_group();
  /// Returns whether the group had calls. They are in flight now, but have not started.
  caf::expected<bool> close_group();
  /// The operation of a request over the ranks of `in_epoch`, or of now where it is 0.
  caf::expected<operation> operation_for(const proto::CollectiveRequest& request, epoch_number in_epoch);
  /// The request goes to the journal. `rank_group`: see `operation_queue`; `in_epoch`: whose ranks it is for, 0: of
  /// now.
  /// `origin`: for ranks' calls, which they were.
  caf::expected<sequence_number> enqueue(proto::CollectiveRequest& request, uint64_t rank_group, epoch_number in_epoch,
                                         proto::CallOrigin origin = {});
  /// The same for a call of the host, whose answer it returns.
  proto::CollectiveResponse enqueue_of_host(proto::CollectiveRequest& request);

  // -- of a communicator that is built again --

  /// Operations that were recovered have their limits again; a call of these that comes again is answered, not run.
  void resume(const recovered_communicator& before);
  /// The host's calls were acknowledged up to this one: those that no stream knows are lost, and have failed.
  void note_acknowledged(sequence_number sequence);

  // -- attempts --

  /// What was called and has not started, if it may.
  void run_waiting();
  /// An epoch is open, and the members know of it: running operations start in it.
  void run_in_new_epoch();
  /// Sends the plans that have gathered: they were made for the members of now.
  void flush();
  /// The same, unless they may wait for calls that come while earlier operations are in flight: see `outbox::may_wait`.
  /// They wait for one `suspect.interval` at most.
  void flush_gathered();

  // -- ends --

  void note_ended(const operation& op);
  operation_outcomes& outcomes() { return outcomes_; }
  const operation_outcomes& outcomes() const { return outcomes_; }

private:
  /// A new attempt starts in the open epoch.
  void run(operation& op);
  /// Whether operations may go from memory to memory.
  bool shares_memory() const { return options_.share_memory && members_.all_in_reach(epochs_.members().ranks()); }
  std::chrono::steady_clock::time_point now() const { return self_->clock().now(); }

  communicator_actor::pointer self_;
  const communicator_options& options_;
  epoch_change& epochs_;
  member_directory& members_;
  member_watch& watch_;
  call_limits& limits_;
  outbox& out_;
  operation_planner planner_;
  operation_outcomes outcomes_;
  std::map<call_key, sequence_number> known_calls_; ///< Of the host, of a communicator that was built again.
};

} // namespace ringmaster
