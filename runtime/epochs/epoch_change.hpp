#pragma once

#include "messages/cluster.pb.h"
#include "runtime/epochs/communicator_end.hpp"
#include "runtime/epochs/communicator_recovery.hpp"
#include "runtime/epochs/departures.hpp"
#include "runtime/epochs/epoch_state.hpp"
#include "runtime/epochs/loss_log.hpp"
#include "runtime/epochs/rank_history.hpp"
#include "runtime/epochs/spare_search.hpp"
#include "runtime/health/verdict_log.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/operation_queue.hpp"

#include <string>
#include <variant>
#include <vector>

namespace ringmaster {

/// Decides who belongs to a communicator, in which epoch, and which of its operations are certain to have ended.
///
///   active --member lost, operation broken--> quiescing --all stopped--> (replacing -->) active, a new epoch
///     |                                           |
///     +-- abort, destroy, no member left ---------+--> ending --all stopped--> aborted, or gone
///
/// A member that is to leave is handled like a lost one, at a moment when no operation is in flight. Until then new
/// calls wait.
///
/// An operation is `running` until every rank has finished it, then `decided`: from then on it counts as done by the
/// ranks that ran it, whatever happens to them. Operations that are running when an epoch opens run again in it, from
/// their inputs, which nothing has changed.
///
/// A pure state machine without a clock or an actor. The caller reports events; each returns decisions, with their
/// reasons, in the order in which to carry them out, before the next event is reported. Invariants, which
/// tests/runtime/epochs/epoch_orders_test.cpp tries in every order of events: no epoch opens before all members that
/// are not lost have stopped; epochs only rise; a lost device does not come back; a decided operation is not cancelled;
/// no epoch opens after the end.
class epoch_change {
public:
  using phase = communicator_phase;

  /// These streams stop touching memory for older epochs, and drop the cancelled operations. Their `quiesced` counts if
  /// it carries this epoch.
  struct stop_streams {
    epoch_number epoch;
    std::vector<device_id> devices;
    std::vector<sequence_number> cancelled;
    bool forget = false; ///< The communicator ends: drop everything of it.
    /// It was built again: first these are put in place, each of the epoch in which it has run.
    std::vector<std::pair<sequence_number, epoch_number>> decided;
  };
  /// All ranks have finished it: results may be put in place.
  struct release_operation {
    sequence_number sequence;
  };
  /// These ranges have been written, with results or in part: the host's copies of them are outdated.
  struct outputs_changed {
    std::vector<operation_queue::memory_range> ranges;
  };
  /// The operation has ended; `what.error` says whether it failed. It has left the queue.
  struct operation_ended {
    operation what;
  };
  /// A device is wanted for the lost one's rank, with these ranges filled as on the lost one. To be answered with
  /// `spare` or `no_spare`.
  struct spare_wanted {
    gpu_sim::DeviceMetadata lost;
    std::vector<operation_queue::memory_range> inputs;
    bool leaving = false; ///< The device still works and holds the ranges, which are all of its memory.
  };
  /// The epoch is open over `members()`: start the running operations.
  struct epoch_opened {
    epoch_number epoch;
    std::string reason;
    std::vector<sequence_number> rerun; ///< Operations that have run before.
  };
  /// These members have left and are to forget the communicator; or, with a `problem`, they stay.
  struct members_left {
    std::vector<device_id> devices;
    epoch_number epoch; ///< The first one without them.
    caf::error problem;
  };
  /// No call is accepted from now on.
  struct end_began {
    caf::error error;
  };
  /// No stream touches memory for the communicator any longer.
  struct communicator_aborted {
    std::string reason;
  };
  /// The same, and a client has asked to destroy the communicator.
  struct communicator_gone {
    std::string reason;
  };
  /// It is complete: what was done about the failure is in it. Every survivor is to hear of it.
  struct verdict_given {
    proto::Verdict what;
  };
  using decision
    = std::variant<stop_streams, release_operation, outputs_changed, operation_ended, spare_wanted, epoch_opened,
                   members_left, end_began, communicator_aborted, communicator_gone, verdict_given>;
  using decisions = std::vector<decision>;

  /// Opens epoch 1 over these.
  epoch_change(communicator_id owner, proto::FailurePolicy policy, std::vector<rank_device> ranks);
  /// Goes on with what was recovered: call `resume` next.
  epoch_change(communicator_id owner, proto::FailurePolicy policy, const recovered_communicator& from);

  // -- what is known --

  /// Operations that were called and have not ended. The caller adds to it and starts operations.
  operation_queue& operations() { return operations_; }
  const operation_queue& operations() const { return operations_; }
  const epoch_state& state() const { return state_; }
  const rank_history& members() const { return members_; }
  const departures& leaving() const { return departures_; }
  /// What is called may start at once.
  bool may_start() const { return state_.is_active() && !departures_.any_asked(); }
  /// The error of calls during and after the end: `device_lost` if no device is left, else `aborted`. None before.
  caf::error end_error() const;
  /// The losses so far, the latest of very many; after the end, its reason.
  std::string async_error() const;
  const verdict_log& verdicts() const { return verdicts_; }
  /// The verdict with what is known of its culprits, which have their devices: rank, node, host, process.
  proto::Verdict completed(proto::Verdict found) const;

  // -- members --

  /// The communicator was built again: stops all streams for a new epoch. `lost`: members that have not come back, and
  /// why.
  decisions resume(const std::vector<std::pair<device_id, std::string>>& lost);
  /// These are lost for one cause: `found` has all of the verdict but the culprits and the epoch.
  decisions lost(const std::vector<device_id>& devices, const proto::Verdict& found);
  /// The same for one, of whose cause only a text is known. `left`: the device shut down in good order, which has the
  /// same consequences.
  decisions lost(device_id device, const std::string& cause, bool left = false);
  decisions quiesced(device_id device, epoch_number epoch);
  decisions spare(const proto::SpareResponse& x, device_id lost);
  decisions no_spare(const std::string& why);
  /// Messages between members may have been lost, but no member: running operations run again. The culprits are the
  /// members that cannot reach each other, the evidence is the reason.
  decisions way_lost(const proto::Verdict& found);
  /// These leave once nothing is in flight; devices that are no members count as left. Error: refused.
  caf::error ask_to_leave(const std::vector<device_id>& devices, const std::string& reason);
  /// Those that have not left yet stay.
  decisions ask_to_stay(const std::vector<device_id>& devices);
  /// A member was asked to leave and nothing is in flight: call `let_leave`.
  bool can_leave() const;
  decisions let_leave();

  // -- operations --

  /// Reports of older epochs are ignored.
  decisions reported(const proto::RankReport& x);
  /// Those that are still running fail. `found`: the cause; its evidence says what they were waiting for.
  decisions overdue(const std::vector<sequence_number>& sequences, const std::string& limit, proto::Verdict found);
  /// No rank has made progress for too long: all running operations fail. The evidence is the reason.
  decisions stalled(const proto::Verdict& found);
  /// A verdict about which nothing else is done: about calls, or about a slow device.
  decisions judged(const proto::Verdict& found);
  /// Calls that waited for GroupEnd are in flight: those that were cancelled meanwhile end.
  decisions group_closed();
  /// The data of a shared-memory operation starts to move: the operation is decided, and members are not stopped before
  /// `transfer_finished`.
  decisions data_moves(operation& op);
  /// `damage`: why the result is incomplete.
  decisions data_moved(sequence_number sequence, const caf::error& damage = {});
  decisions transfer_finished();

  // -- the end --

  decisions abort(const std::string& reason);
  /// Ends the communicator at the request of a client, which then is answered by `communicator_gone`.
  decisions destroy(const std::string& reason);
  /// A request to the coordinator is open: the communicator stays until `let_go`.
  void hold() { end_.hold(); }
  decisions let_go();

  /// For the log of a broken invariant: "communicator 7 is quiescing in epoch 3 (open: 2), ranks [0x1 0x2], ...".
  std::string state_text() const;

private:
  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  /// What holds between any two events.
  void check() const;
  /// The sentence about the loss of these.
  proto::Verdict verdict_on(const std::vector<device_id>& devices, proto::Verdict found) const;
  /// The member loses its rank, or waits for a spare, for this reason.
  void take_rank_of(device_id device, const std::string& reason);
  /// What is lost with these.
  std::string outputs_lost_with(const std::vector<device_id>& devices) const;
  /// These have lost their ranks.
  void go_on_after_loss(decisions& out, const std::vector<device_id>& devices, const std::string& reason);
  /// After losses: ends, or stops the others.
  void go_on_without(decisions& out, const std::string& reason);
  /// Stops all members for a new epoch, or defers that until data has been moved.
  void stop_members(decisions& out, const std::string& reason);
  /// All members have stopped: ends, replaces or opens the epoch.
  void all_stopped(decisions& out);
  void ask_for_spare(decisions& out);
  void end_operations(decisions& out, std::vector<operation> ended);
  /// A member that was to be replaced stays.
  void keep(decisions& out, device_id device, const caf::error& problem);
  void begin_end(decisions& out, const std::string& reason, errc code = errc::aborted);
  void finish_end(decisions& out);

  communicator_id owner_;
  proto::FailurePolicy policy_;
  operation_queue operations_;
  epoch_state state_;
  rank_history members_;
  departures departures_;
  spare_search spares_;
  loss_log losses_;
  verdict_log verdicts_;
  communicator_end end_;
};

} // namespace ringmaster
