#pragma once

#include "actors/communicators/operation.hpp"
#include "actors/calls/wall_clock.hpp"
#include "runtime/operations/admission.hpp"
#include "runtime/health/deadlines.hpp"
#include "runtime/selection/selection.hpp"

#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace ringmaster {

class direct_job; // actors/communicators/direct_job.hpp
class mover_pool; // actors/communicators/mover_pool.hpp

struct communicator_options {
  communicator_id id;
  proto::FailurePolicy policy = proto::SHRINK;
  bool deterministic = false; ///< Reductions add in rank order: runtime/rank_order/rank_order.hpp.
  suspicion::options suspect;
  caf::timespan operation_limit = std::chrono::seconds{30}; ///< Without any progress, an operation fails.
  caf::timespan spare_limit = std::chrono::seconds{5};      ///< How long a lost member's place waits for a free device.
  uint32_t operations_max = 1024;                           ///< Enqueued and not ended.
  bool share_memory = true;  ///< Ranks in this process may be served together, straight from memory to memory.
  std::shared_ptr<mover_pool> movers = {}; ///< That help to move the data; null: the communicator does it alone.
  caf::timespan turn = std::chrono::microseconds{200}; ///< It moves data for so long between two looks at its mailbox.
  cost_constants costs; ///< Between processes: what "auto" goes by.
  /// Held while an operation goes to the streams of its ranks, so that all streams get the operations of communicators
  /// that share devices in one order, and none waits for the other in a circle.
  std::shared_ptr<std::mutex> enqueue_order = std::make_shared<std::mutex>();
  wall_clock clock;
  coordinator_actor coordinator;                            ///< May be invalid in tests.
  journal_actor journal;                                    ///< May be invalid.
};


/// Whose call an operation is.
struct operation_caller {
  uint64_t rank_group = 0; ///< What ranks have called it in, which does not wait for the host's group; 0: the host.
  uint64_t epoch = 0;      ///< That its rank numbers are of; 0: of now.
};

/// The state of a COMMUNICATOR.
///
///   active --member lost, operation broken--> quiescing --all quiesced--> (replacing -->) active, a new epoch
///     |                                           |
///     +-- abort, destroy, nobody left ------------+--> ending --all quiesced--> aborted, or gone
///
/// An operation is `running` until every rank has finished it, then `decided`: from then on it counts as done by the
/// group that ran it, whoever dies. What runs when an epoch opens runs again in it, from its untouched inputs.
class communicator_state {
public:
  static inline const char* name = "communicator";

  enum class phase { active, quiescing, replacing, ending, aborted };

  using status_promise = caf::typed_response_promise<gpu_sim::GetCommStatusResponse>;
  using rank_call_promise = caf::typed_response_promise<proto::RankCallResponse>;

  communicator_actor::pointer self = nullptr;
  communicator_options options;
  std::vector<member> members; ///< In rank order.
  uint64_t epoch = 1;
  phase state = phase::active;

  // -- calls (communicator.cpp) --
  void start(const std::vector<gpu_sim::DeviceMetadata>& devices, const device_handles& handles);
  gpu_sim::GetCommStatusResponse status() const;
  std::string group_start();
  std::string group_end();
  /// What the two have said, with its code.
  caf::error group_problem(const std::string& text) const;
  void wait(caf::timespan limit, status_promise promise);
  /// Limits of calls and operations that have passed.
  void expire();
  /// Answers those who wait, if nothing is in flight.
  void settle();
  /// Sends one message that many share, instead of a copy for each.
  void tell(const caf::strong_actor_ptr& receiver, const caf::message& what);
  /// Records of one turn go out together: the journal's thread is woken once.
  void journal(proto::Record record);
  void flush_records();
  uint64_t unix_ns() const { return options.clock.unix_ns(self->clock().now()); }

  // -- the ranks' own calls (communicator_calls.cpp) --
  void call(proto::RankCall x, rank_call_promise promise);

  // -- operations (communicator_operations.cpp) --
  /// The request goes to the journal.
  caf::expected<uint64_t> enqueue(proto::CollectiveRequest& request, const operation_caller& by = {});
  /// The operation that is asked for, over those of the caller's ranks that are left.
  caf::expected<operation> operation_for(const proto::CollectiveRequest& request, uint64_t call_epoch);
  void run(operation& op);
  /// Sends the plans that have gathered, as one message to each rank.
  void flush_plans();
  bool flush_pending() const { return flush_pending_; }
  /// Whoever has the answer may call on: what he calls must come to the streams behind the plans.
  void answer_when_flushed(proto::CollectiveResponse answer, caf::typed_response_promise<proto::CollectiveResponse> promise);
  void on_report(const proto::RankReport& x);
  void end(uint64_t sequence, const std::string& error);
  void end_cancelled();

  // -- operations that are run for all ranks together (communicator_together.cpp) --
  void on_arrived(const arrived& x);
  /// It is the communicator's turn again, or the job of this number is done.
  void moved(uint64_t number);

  // -- epochs (communicator_epochs.cpp) --
  void on_down(const caf::down_msg& x);
  void lose(uint64_t device, const std::string& cause, const std::string& noticed_by, bool fence);
  void cancel(operation& op, const std::string& error);
  /// Stops every stream; when all have stopped, `reopen` goes on.
  void quiesce(const std::string& reason);
  void on_quiesced(const proto::Quiesced& x);
  void abort(const std::string& reason);
  void destroy(const std::string& reason, caf::typed_response_promise<proto::CommDestroyResponse> promise);
  void on_progress(const proto::Progress& x);
  void tick();
  std::string explain() const;

private:
  /// The one that was asked for; for "auto", the shortest way in one process, else what is estimated to be fastest.
  caf::expected<std::string> algorithm_for(const proto::CollectiveRequest& request, size_t ranks) const;
  bool everybody_is_here() const;
  /// Whether all ranks are in this process, and the algorithm is one that has them served together.
  bool can_run_together(const operation& op) const;
  /// Runs what everybody has come to, for a while.
  void run_together();
  /// Takes the next operation up, and moves the data of a small one. Returns whether there is one to run.
  bool begin_moving();
  /// Returns whether the data of the operation that was taken up is where it belongs. If not, `moved` is called later.
  bool keep_moving(std::chrono::steady_clock::time_point turn_end);
  bool give_way();
  void data_is_there(operation& op);
  /// Slices that are moved count as progress.
  void note_moving(std::chrono::steady_clock::time_point now);
  void release(uint64_t first, uint64_t last);
  bool everybody_is_at(uint64_t sequence) const;
  void reopen();
  void replace_next();
  void take_spare(const proto::SpareResponse& x, const device_handle& handle, uint64_t lost);
  void activate();
  void finish_ending();
  void announce_members();
  /// An epoch is open over the present members.
  void note_ranks();
  void check_decided();
  /// The host's copies of the outputs are not what the devices hold any more. Said before any stream puts a result in
  /// place: a later operation's input must not be restored from before this one.
  void tell_written(const operation& op);
  operation* find(uint64_t sequence);
  /// Has `expire(number)` called when the time is over.
  uint64_t limit(caf::timespan limit);
  void set_timer();
  void expire(uint64_t number);
  /// Makes one plan of those of a group's small all-reduces that do not touch each other's data (communicator_fusing.cpp).
  void fuse_batch();
  /// Whether `op` may be walked as one with those from `leader` on, which are.
  bool can_fuse(const operation& op, const std::vector<operation*>& fused) const;
  /// Those that are fused with it, or it alone.
  std::vector<operation*> fused_with(operation& op);
  /// Their time is over: they fail, but for those whose outcome is certain.
  void end_late(const std::vector<uint64_t>& sequences, const std::string& limit_text);
  void limit_operation(operation& op);

  /// Does what can be done with the ranks' calls.
  void serve_calls();
  void begin_parts(const admission::verdict& matched);
  /// One number for parts that all of their ranks have called in one group, and another for what comes then.
  uint64_t group_of(const std::vector<call_part>& parts);
  void begin_split(const std::vector<call_part>& parts);
  /// Tells the callers their new communicator; false where none of them waits any more.
  bool hand_over(const gpu_sim::CommInitResponse& made, const std::vector<call_part>& parts);
  /// A communicator that nobody knows.
  void destroy(uint64_t comm_id);
  /// One part of a call has ended; with the last one the rank is answered.
  void part_ended(uint64_t ticket, const std::string& error);
  void parts_ended(const std::vector<call_part>& parts, const std::string& error);
  /// An operation that ranks had called.
  void called_operation_ended(uint64_t sequence, const std::string& error);
  void call_expired(uint64_t ticket);
  /// The communicator has ended: nobody shall wait.
  void fail_calls();
  /// Whether the member's place waits for a spare.
  bool lost(uint64_t device) const;
  /// Whether members are being stopped or replaced: then its devices may not be what they will be in a moment.
  bool changing() const { return state != phase::active && state != phase::aborted; }
  bool watching() const { return !operations_.empty() || changing(); }
  void keep_ticking();
  /// Whether so many suspects are too many to be believed, for now.
  bool overloaded(size_t suspects, size_t watched, std::chrono::steady_clock::time_point now);

  /// Data that is being moved. It ends whoever is lost: epochs wait for it.
  struct moving_job {
    uint64_t number = 0;
    uint64_t sequence = 0; ///< 0: none.
    std::shared_ptr<direct_job> work; ///< Null for a small one.
    uint32_t slices_seen = 0;
  };

  /// A call of one rank that has not been answered.
  struct open_call {
    rank_call_promise promise;
    size_t parts = 0; ///< That have not ended.
    proto::RankCallResponse answer;
    std::chrono::steady_clock::time_point called_at;
    bool grouped = false; ///< Its parts came together.
    bool limited = false; ///< The limit is the caller's: operations that are under way end by it, too.
  };

  std::deque<operation> operations_; ///< Enqueued and not ended, in order.
  proto::OperationBatch batch_;      ///< Plans that are not sent yet.
  bool flush_pending_ = false;
  bool may_fuse_ = false;            ///< `batch_` has plans of groups.
  std::vector<proto::Record> records_; ///< That are not sent yet: those of calls wait for the plans.
  bool running_together_ = false;
  std::vector<std::pair<proto::CollectiveResponse, caf::typed_response_promise<proto::CollectiveResponse>>> answers_;
  moving_job moving_;
  bool quiesce_after_moving_ = false;
  std::deque<operation> group_;      ///< Called since GroupStart.
  bool group_open_ = false;
  uint64_t groups_ = 0;
  uint64_t sequences_ = 0;
  std::string error_;                ///< Of the latest operations.
  std::string async_error_;
  std::string end_reason_;
  std::set<uint64_t> quiescing_;     ///< Devices that have not answered yet.
  std::string epoch_reason_;
  std::deque<uint64_t> to_replace_;  ///< Lost devices whose places wait for a spare.
  uint64_t asked_for_ = 0;           ///< The lost device that a SpareRequest under way is for.
  uint64_t asked_at_ = 0;            ///< The latest operation that the request knew of.
  admission admission_;
  std::map<uint64_t, std::vector<gpu_sim::DeviceMetadata>> history_; ///< Ranks by epoch, of the latest that were open.
  std::vector<uint64_t> last_tickets_;
  uint64_t rank_groups_ = 0;
  uint32_t splits_ = 0; ///< That the coordinator has been asked for: their parts must find somebody, or go.
  std::map<uint64_t, open_call> calls_;                       ///< By ticket.
  std::map<uint64_t, std::vector<uint64_t>> called_operations_; ///< Tickets, by sequence.
  std::map<uint64_t, uint64_t> limited_operations_;           ///< Sequences, by the number of their limit.
  deadlines limits_;
  proto::CollectiveKind last_kind_ = proto::ALL_REDUCE;       ///< Of the latest operation that ended well.
  uint64_t last_ended_ = 0;                                   ///< Its sequence.
  std::map<uint64_t, status_promise> waiters_;
  std::map<uint64_t, caf::timespan> wait_limits_;
  uint64_t waits_ = 0;
  std::vector<caf::typed_response_promise<proto::CommDestroyResponse>> destroyers_;
  bool gone_ = false;                ///< Destroyed: the actor ends when all streams have let go.
  bool ticking_ = false;
  uint64_t requests_ = 0;
  std::chrono::steady_clock::time_point last_progress_;
  std::optional<std::chrono::steady_clock::time_point> most_late_since_;
};

/// `devices` and `handles` in rank order.
communicator_actor::behavior_type communicator(communicator_actor::stateful_pointer<communicator_state> self,
                                               communicator_options options,
                                               std::vector<gpu_sim::DeviceMetadata> devices,
                                               device_handles handles);

} // namespace ringmaster
