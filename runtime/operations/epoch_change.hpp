#pragma once

#include "messages/cluster.pb.h"
#include "runtime/invariants/ensure.hpp"
#include "runtime/operations/operation_queue.hpp"

#include <deque>
#include <map>
#include <set>
#include <string>
#include <variant>

namespace ringmaster {

/// Who belongs to a communicator, in which epoch, and which of its operations are certain to have ended.
///
///   active --member lost, operation broken--> quiescing --all quiesced--> (replacing -->) active, a new epoch
///     |                                           |
///     +-- abort, destroy, nobody left ------------+--> ending --all quiesced--> aborted, or gone
///
/// Members may also leave, as if they were lost at a moment at which nothing is under way: until it comes, what is
/// called waits.
///
/// An operation is `running` until every rank has finished it, then `decided`: from then on it counts as done by the
/// group that ran it, whoever dies. What runs when an epoch opens runs again in it, from its untouched inputs.
///
/// It is told what happens, and answers with what is to be done, in this order, and why; whoever asks carries it out
/// before he tells of anything else. No clock, no actor: a pure state machine. Invariants, which
/// tests/runtime/operations/epoch_orders_test.cpp tries in every order of events: no epoch opens while a member that is
/// not lost has not stopped; epochs only rise; who was lost does not come back; what was decided is not cancelled;
/// behind the end nothing opens.
class epoch_change {
public:
  enum class phase { active, quiescing, replacing, ending, aborted };

  /// These streams are to stop touching memory for older epochs, and to drop what was cancelled. Their `quiesced`
  /// counts with this epoch.
  struct stop_streams {
    epoch_number epoch;
    std::vector<device_id> devices;
    std::vector<sequence_number> cancelled;
    bool forget = false; ///< For good.
  };
  /// Everybody has finished it: results may be put in place.
  struct release_operation {
    sequence_number sequence;
  };
  /// These ranges hold results now, or something that is none: the host's copies of them are too old.
  struct outputs_changed {
    std::vector<operation_queue::memory_range> ranges;
  };
  /// The operation has ended; `what.error` says whether it failed. It is in no queue any more.
  struct operation_ended {
    operation what;
  };
  /// A device is wanted for the lost one's rank, holding these ranges as it did: `spare` or `no_spare` answers.
  struct spare_wanted {
    gpu_sim::DeviceMetadata lost;
    std::vector<operation_queue::memory_range> inputs;
    bool leaving = false; ///< It lives, and holds them: they are all of its memory.
  };
  /// The epoch is open over `ranks()`: what runs is to be begun.
  struct epoch_opened {
    epoch_number epoch;
    std::string reason;
    std::vector<sequence_number> rerun; ///< Which are not begun for the first time.
  };
  /// These have left, and are to forget the communicator; or they stay: `problem` says why.
  struct members_left {
    std::vector<device_id> devices;
    epoch_number epoch; ///< From which on it is so.
    caf::error problem;
  };
  /// Nothing is taken any more; calls fail.
  struct end_began {
    caf::error error;
  };
  /// No stream touches memory for it any more.
  struct communicator_aborted {
    std::string reason;
  };
  /// The same, and somebody wants it gone.
  struct communicator_gone {
    std::string reason;
  };
  using decision = std::variant<stop_streams, release_operation, outputs_changed, operation_ended, spare_wanted,
                                epoch_opened, members_left, end_began, communicator_aborted, communicator_gone>;
  using decisions = std::vector<decision>;

  /// Epoch 1 is open over these.
  epoch_change(communicator_id owner, proto::FailurePolicy policy, std::vector<rank_device> ranks);

  /// What was called and has not ended. Whoever calls adds to it, and begins what an open epoch is to run.
  operation_queue& operations() { return operations_; }
  const operation_queue& operations() const { return operations_; }

  phase state() const { return state_; }
  epoch_number epoch() const { return epoch_; }
  /// Whether members are being stopped or replaced: its devices may not be what they will be in a moment.
  bool changing() const { return state_ != phase::active && state_ != phase::aborted; }
  bool ending() const { return state_ == phase::ending || state_ == phase::aborted; }
  /// Of what is called while it ends and afterwards: `device_lost` where no device is left, else `aborted`. None
  /// before.
  caf::error end_error() const;
  bool gone() const { return gone_; }
  const std::vector<rank_device>& ranks() const { return ranks_; }
  /// Whether the device has a rank, and has not been lost.
  bool is_there(device_id device) const;
  /// Whether what is called may begin at once.
  bool begins() const { return state_ == phase::active && to_leave_.empty(); }
  /// Whether the device has been asked to leave and has not.
  bool is_leaving(device_id device) const { return to_leave_.count(device) != 0 || leaving_.count(device) != 0; }
  bool has_stopped(device_id device) const { return quiescing_.count(device) == 0; }
  /// What has happened that nobody had called for: all losses, the latest of very many; once it ends, why.
  std::string async_error() const;
  /// The latest epoch that was open. While members change, calls are for it.
  epoch_number opened() const { return history_.rbegin()->first; }
  /// Who had the ranks in an epoch that was open; nullptr: that is not known any more.
  const std::vector<rank_device>* ranks_in(epoch_number epoch) const;
  /// Those of that epoch, and which of them have been dropped since.
  std::vector<rank_device> ranks_now(epoch_number epoch) const;
  /// The first of a new batch of operations is called: whoever called the one before knows how it has ended. `of_host`:
  /// what ranks call meanwhile is none of it.
  void batch_began(bool of_host);
  /// Whether who waits for the latest batch is told how this operation ends.
  bool is_of_batch(const operation& op) const { return !of_host_ || !op.was_called_by_ranks(); }
  /// Devices that took a rank after an operation of the latest batch was decided: they do not hold its result, and
  /// nobody else holds that rank's.
  const std::set<device_id>& without_results() const { return without_results_; }
  /// Whether the report is of an attempt that counts.
  bool counts(const proto::RankReport& x);

  /// `left`: it went by itself, in good order; what that means for the others is the same.
  decisions lost(device_id device, const std::string& cause, bool left = false);
  decisions quiesced(device_id device, epoch_number epoch);
  decisions reported(const proto::RankReport& x);
  decisions spare(const proto::SpareResponse& x, device_id lost);
  decisions no_spare(const std::string& why);
  /// Those that are still running fail. `doing`: what was waited for.
  decisions overdue(const std::vector<sequence_number>& sequences, const std::string& limit, const std::string& doing);
  /// What the members tell each other may have been lost, though none of them was: what runs, runs again.
  decisions way_lost(const std::string& reason);
  /// Nobody has moved for too long: all that runs fails.
  decisions stalled(const std::string& reason);
  /// Calls have come into flight that waited for GroupEnd: those that were cancelled meanwhile end.
  decisions group_closed();
  /// These are to leave as soon as nothing is under way; those that are no members have left. Error: refused.
  caf::error ask_to_leave(const std::vector<device_id>& devices, const std::string& reason);
  /// Those of them that have not gone yet are not to leave any more.
  decisions ask_to_stay(const std::vector<device_id>& devices);
  /// Whether somebody wants to leave and nothing is under way: then `let_leave` is to be asked.
  bool can_leave() const;
  decisions let_leave();
  decisions abort(const std::string& reason);
  /// A client's: the communicator is to be gone.
  decisions destroy(const std::string& reason);

  /// The data of a joint operation is on its way: it is decided, and no epoch ends before `transfer_finished`.
  decisions data_moves(operation& op);
  /// `damage`: why it is not what it should be, though everybody has come to it.
  decisions data_moved(sequence_number sequence, const caf::error& damage = {});
  decisions transfer_finished();
  bool must_defer() const { return stop_when_it_rests_; }

  /// Somebody has asked for what the communicator must be there for: it does not go before `let_go`.
  void hold() { ++held_; }
  decisions let_go();

  /// For the log of a broken invariant: "communicator 7 quiescing in epoch 3, ranks 0x1 0x2, to stop 0x2, ...".
  std::string state_text() const;

private:
  void ensure(bool holds, std::string_view what,
              const std::source_location& where = std::source_location::current()) const {
    ensure_of(*this, holds, what, where);
  }
  /// What holds between any two events.
  void check() const;
  void enter(phase next);
  void open_next_epoch();
  void quiesce(decisions& out, const std::string& reason);
  void reopen(decisions& out);
  void replace_next(decisions& out);
  void activate(decisions& out);
  void begin_end(decisions& out, const std::string& reason, errc code = errc::aborted);
  void finish_end(decisions& out);
  void end_decided(decisions& out);
  void end_cancelled(decisions& out);
  void end(decisions& out, operation op);
  void note_loss(std::string reason);
  void note_results(const operation& op);
  /// There is no spare for one that was to leave: it is a member as before.
  void stay(decisions& out, device_id device, const caf::error& problem);
  /// Nobody will leave any more.
  void keep_leavers(decisions& out, const caf::error& problem);
  size_t rank_of(device_id device) const;
  std::string name_of(device_id device) const;
  /// Where spares are to get inputs, else nobody keeps copies.
  void note_outputs(decisions& out, const operation& op) const;
  void note_ranks();

  operation_queue operations_;
  communicator_id owner_;
  proto::FailurePolicy policy_;
  std::vector<rank_device> ranks_;
  std::map<epoch_number, std::vector<rank_device>> history_; ///< Ranks by epoch, of the latest that were open.
  phase state_ = phase::active;
  epoch_number epoch_{1};
  std::set<device_id> quiescing_; ///< Devices that have not stopped yet.
  std::string epoch_reason_;
  std::string end_reason_;
  errc end_code_ = errc::aborted;
  std::deque<std::string> losses_;
  uint64_t losses_forgotten_ = 0;
  bool of_host_ = false;     ///< The latest batch.
  bool has_results_ = false; ///< An operation of the latest batch was decided.
  std::set<device_id> without_results_;
  std::deque<device_id> to_replace_;          ///< Lost devices whose ranks wait for a spare.
  device_id asked_for_;                       ///< The lost device that a spare has been asked for; 0: none.
  sequence_number asked_at_;                  ///< The latest operation that the request knew of.
  std::map<device_id, std::string> to_leave_; ///< Members that wait for a quiet moment, and why they leave.
  std::map<device_id, std::string> leaving_;  ///< Which live while their ranks wait for a spare; what to say of it.
  uint32_t held_ = 0;
  bool data_moves_ = false;
  bool stop_when_it_rests_ = false;
  bool gone_ = false;
  bool gone_told_ = false;
};

} // namespace ringmaster
