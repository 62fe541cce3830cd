#pragma once

#include "actors/calls/fair_inbox.hpp"
#include "actors/communicators/outbox.hpp"
#include "actors/communicators/shared_memory_run.hpp"
#include "runtime/health/clock_estimates.hpp"
#include "runtime/health/deadlines.hpp"
#include "runtime/health/traffic.hpp"
#include "runtime/health/watch.hpp"
#include "runtime/memory/memory_neighbours.hpp"
#include "runtime/operations/call_desk.hpp"
#include "runtime/operations/communicator_status.hpp"
#include "runtime/operations/epoch_change.hpp"
#include "runtime/operations/waiting_ranks.hpp"
#include "runtime/selection/known_picks.hpp"

#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace ringmaster {

struct communicator_options {
  communicator_id id;
  proto::FailurePolicy policy = proto::SHRINK;
  bool deterministic = false; ///< Reductions add in rank order: runtime/rank_order/rank_order.hpp.
  std::string name;           ///< For the journal.
  suspicion::options suspect;
  caf::timespan operation_limit = std::chrono::seconds{30}; ///< Without any progress, an operation fails.
  caf::timespan spare_limit = std::chrono::seconds{5};      ///< How long a lost member's place waits for a free device.
  uint32_t operations_max = 1024;                           ///< Enqueued and not ended.
  bool share_memory = true; ///< Ranks that are all in reach may have joint operations, from memory to memory.
  /// The memories of this host's other processes, to be written; null: only those of this process are in reach.
  std::shared_ptr<memory_neighbours> neighbours;
  bool must_share = false;      ///< A communicator with a member out of reach is refused.
  bool must_link = false;       ///< One over several processes, of which one has no bulk connections, is refused.
  bool speak_by_relays = false; ///< Also with the streams of this process; for tests.
  uint32_t devices_a_host = 0;  ///< For tests: by their numbers; 0: hosts are as the devices lie.
  std::shared_ptr<shared_memory_movers> movers
    = {}; ///< That help to move the data; null: the communicator does it alone.
  caf::timespan turn = std::chrono::microseconds{200}; ///< It moves data for so long between two looks at its mailbox.
  cost_constants costs;                                ///< Between processes: what "auto" goes by.
  /// See `outbox`. Shared by the communicators of a process.
  std::shared_ptr<std::mutex> enqueue_order = std::make_shared<std::mutex>();
  /// Shared by the communicators of a process.
  std::shared_ptr<waiting_ranks> waiting = std::make_shared<waiting_ranks>();
  wall_clock clock;
  coordinator_actor coordinator; ///< May be invalid in tests.
  journal_actor journal;         ///< May be invalid.
};

/// The state of a COMMUNICATOR: it receives, asks those who decide, and sends what they say.
///
///   call_desk        the ranks' own calls: which match, who is answered             runtime/operations
///   operation_queue  what is in flight, and what waits for GroupEnd                  runtime/operations
///   epoch_change     who belongs to it, what runs again, what is certain to be done  runtime/operations
///   watch            who is late, and when anybody has moved                         runtime/health
///   traffic          how many bytes came by which way                                runtime/health
///   shared_memory_run        moves the data of operations whose ranks are all in reach of this process: on its host
///   outbox           plans, records and answers that gather for a moment
class communicator_state {
public:
  static inline const char* name = "communicator";
  /// Calls of one rank that are kept until they have ended. A rank's handle makes less at a time and keeps the others:
  /// `rank_caller_state::calls_under_way_max`.
  static constexpr size_t calls_open_max = 4096;

  using status_promise = caf::typed_response_promise<gpu_sim::GetCommStatusResponse>;
  using rank_call_promise = caf::typed_response_promise<proto::RankCallResponse>;
  using leave_promise = caf::typed_response_promise<proto::LeaveResponse>;
  using destroy_promise = caf::typed_response_promise<proto::CommDestroyResponse>;

  communicator_actor::pointer self = nullptr;
  communicator_options options;

  void start(const std::vector<gpu_sim::DeviceMetadata>& devices, const device_handles& handles);
  epoch_number epoch() const { return epochs_->epoch(); }
  epoch_change::phase state() const { return epochs_->state(); }
  /// Whether what is called begins at once.
  bool can_begin() const { return epochs_->begins(); }

  // -- what it says of itself (communicator_status.cpp) --
  gpu_sim::GetCommStatusResponse status() const;
  /// The same, for the host: behind a terminal one, what it calls next is asked for by itself.
  gpu_sim::GetCommStatusResponse tell_outcome();
  /// All that is known of what everybody does.
  proto::CommunicatorStatus whole_status() const;

  // -- the host's calls (communicator.cpp) --
  caf::error group_start();
  caf::error group_end();
  caf::result<proto::CollectiveResponse> collective(proto::CollectiveRequest& request);
  caf::result<proto::CollectiveResponses> collectives(proto::CollectiveRequests& requests);
  void wait(caf::timespan limit, status_promise promise);
  void abort(const std::string& reason);
  void destroy(const std::string& reason, destroy_promise promise);

  /// What it would run for the request, over the ranks of an epoch, or of now where it is 0
  /// (communicator_operations.cpp).
  caf::expected<operation> operation_for(const proto::CollectiveRequest& request, epoch_number in_epoch);

  // -- the ranks' own calls (communicator_calls.cpp) --
  void call(const proto::RankCall& x, rank_call_promise promise);
  /// Whoever waits for an answer hears why there is none.
  void answer_if_it_dies();

  // -- streams and members (communicator_operations.cpp, communicator_epochs.cpp) --
  void on_report(const proto::RankReport& x);
  void on_report(const proto::RankReports& x);
  void on_node_report(const proto::ProgressReport& x);
  void way_lost(const std::string& reason);
  /// The coordinator has given it up, for another communicator.
  void on_member_lost(const proto::MemberLost& x);
  /// Without a reason they are to stay after all (communicator_leaving.cpp).
  void leave(const proto::LeaveRequest& x, leave_promise promise);
  void on_shared_memory_arrival(const shared_memory_arrival& x) { shared_memory_->on_arrival(x); }
  void on_shared_memory_arrivals(const shared_memory_arrivals& x) {
    ++control_messages_;
    for (size_t i = 0; i < x.devices.size(); ++i)
      shared_memory_->on_arrival({x.communicator, x.epoch, x.sequence, x.devices[i],
                                  x.memories.empty() ? nullptr : x.memories[i]});
  }
  void on_quiesced(const proto::Quiesced& x);
  void on_progress(const proto::Progress& x);
  void on_down(const caf::down_msg& x);

  // -- itself --
  /// How much may be walked and reported together.
  fusing_limits may_fuse() const;
  void flush();
  /// The same, unless what has gathered may wait for what is called while earlier operations are under way: see
  /// `outbox::may_wait`. For one `suspect.interval` at most.
  void flush_gathered();
  void moved(uint64_t number) { shared_memory_->moved(number); }
  void tick();
  /// Limits of calls and operations that have passed.
  void expire();

private:
  using time_point = std::chrono::steady_clock::time_point;

  // The host's calls (communicator.cpp).
  proto::CollectiveResponse begin(proto::CollectiveRequest& request);
  /// Answers when the plans that have gathered are on their way.
  template <class Response>
  caf::result<Response> after_the_plans(Response answer);

  // Operations (communicator_operations.cpp).
  /// A rank's part has ended, one way or the other: of a series, of each of its operations.
  void note_end(const proto::RankReport& x);
  /// The request goes to the journal. `rank_group`: see `operation_queue`; `in_epoch`: whose ranks it is for, 0: of
  /// now.
  caf::expected<sequence_number> enqueue(proto::CollectiveRequest& request, uint64_t rank_group = 0,
                                         epoch_number in_epoch = {});
  /// The one that was asked for; for "auto", the shortest way on one host, else what is estimated to be fastest.
  bool adds_in_rank_order(const proto::Collective& what) const;
  caf::expected<std::string> algorithm_for(const proto::Collective& what, size_t ranks);
  /// What it is cut into: as was asked for; else, between processes, what `chunk_for` says of their network.
  caf::expected<uint64_t> chunk_of(const proto::Collective& what, size_t ranks);
  /// How the ranks lie, as far as these are the ranks of now.
  plan_request network_request(const proto::Collective& what, size_t ranks) const;
  /// Which hosts the ranks of now lie on: see `rank_hosts`.
  void find_hosts();
  /// Whether this process may read and write every member's memory.
  bool everybody_is_in_reach() const;
  std::shared_ptr<mapped_memory> memory_of(device_id device) const {
    auto known = memories_.find(device);
    return known == memories_.end() ? nullptr : known->second;
  }
  bool can_run_in_shared_memory(const operation& op) const;
  /// A new attempt begins, in the epoch that is open.
  void run(operation& op);
  /// What has been called and has not begun, if it may.
  void run_waiting();
  void limit_operation(operation& op);

  // What was decided (communicator_epochs.cpp).
  /// Tells `epochs_` of something, behind the plans that have gathered: they were made for the members of now.
  void change(const std::function<epoch_change::decisions()>& event);
  void carry_out(epoch_change::decisions decisions);
  void carry_out(epoch_change::stop_streams& x);
  void carry_out(epoch_change::release_operation& x);
  void carry_out(epoch_change::outputs_changed& x);
  void carry_out(epoch_change::operation_ended& x);
  void carry_out(epoch_change::spare_wanted& x);
  void carry_out(epoch_change::epoch_opened& x);
  void carry_out(epoch_change::members_left& x);
  void carry_out(epoch_change::end_began& x);
  void carry_out(epoch_change::communicator_aborted& x);
  void carry_out(epoch_change::communicator_gone& x);
  void lose(device_id device, const std::string& cause, const std::string& noticed_by, bool fence);
  void take_spare(const proto::SpareResponse& x, const device_handle& handle, device_id lost);
  void announce_members();
  void release(sequence_number first, sequence_number last);

  // The ranks' own calls (communicator_calls.cpp).
  /// Does what can be done with them.
  void serve_calls();
  void carry_out(call_desk::begin_operation& x);
  void carry_out(call_desk::begin_split& x);
  void carry_out(call_desk::refuse& x);
  void carry_out(call_desk::answer_call& x);
  void call_expired(uint64_t ticket);
  void end_late(const std::vector<sequence_number>& sequences, const std::string& limit);

  // Those who wait, limits, and what is said of both (communicator.cpp).
  /// Answers those who wait, if nothing is in flight.
  void settle();
  /// Has `expire(number)` called when the time is over.
  uint64_t limit(caf::timespan limit);
  void set_timer();
  caf::error missing_results() const;
  /// What is called now is asked for from now on; and what the host has called before, until it was told of it.
  void begin_batch(bool by_host);
  void expire(uint64_t number);
  /// Of the node that has sent the message that is being handled.
  void note_clock(const proto::ProgressReport& x);
  std::string explain() const;
  communicator_view view() const;
  bool something_runs() const { return !operations().nothing_in_flight() || epochs_->changing(); }
  /// Also while ranks wait for others' calls: a process that stands still makes none.
  bool watching() const { return something_runs() || desk_->open() > 0; }
  void keep_ticking();
  std::vector<device_id> watched() const;
  void ask_progress(const std::vector<device_id>& devices);
  void add_member(const gpu_sim::DeviceMetadata& metadata, const device_handle& handle);
  /// Devices and coordinator live on, and would keep the memory of all that have ever watched them.
  void end_watching();
  operation_queue& operations() { return epochs_->operations(); }
  const operation_queue& operations() const { return epochs_->operations(); }
  time_point now() const { return self->clock().now(); }
  const device_handle& handle_of(device_id device) const { return handles_.at(device); }
  /// In rank order.
  device_handles handles() const;
  audience streams_of(const std::vector<device_id>& devices) const;
  /// Says it to the streams of these devices.
  template <class T>
  void tell(const std::vector<device_id>& devices, const T& what) {
    control_messages_ += streams_of(devices).tell(what);
  }
  std::vector<device_id> ranks() const;
  uint64_t smallest_memory() const;

  std::map<device_id, device_handle> handles_;                   ///< By device, of those that are members or were.
  std::map<device_id, std::shared_ptr<mapped_memory>> memories_; ///< Of other processes' devices, in reach.
  std::map<caf::actor_addr, watch::process_number> processes_;   ///< By relay: its devices are asked together.
  std::vector<uint32_t> hosts_;                                  ///< By rank, as `plan_request` has them.
  known_picks picks_;                                            ///< What "auto" was for these hosts, and pieces.
  std::optional<epoch_change> epochs_;
  std::optional<call_desk> desk_;
  std::optional<watch> watch_;
  traffic traffic_;
  clock_estimates clocks_;          ///< Of other processes' nodes.
  uint64_t ended_ = 0, failed_ = 0; ///< Operations, so far.
  watch::time_point ended_at_;      ///< The latest of these.
  std::optional<shared_memory_run> shared_memory_;
  std::optional<outbox> outbox_;

  /// The ranks' calls that are open, by ticket. They outlive the state: if the actor dies, they are answered.
  std::shared_ptr<std::map<uint64_t, rank_call_promise>> open_calls_
    = std::make_shared<std::map<uint64_t, rank_call_promise>>();
  deadlines limits_;
  uint64_t numbers_ = 0;                                                 ///< Of limits.
  std::map<uint64_t, sequence_number> limited_operations_;               ///< By the number of their limit.
  std::map<uint64_t, std::pair<status_promise, caf::timespan>> waiters_; ///< By the number of their limit.
  std::vector<destroy_promise> destroyers_;
  /// Somebody wants these to leave.
  struct leave_call {
    std::set<device_id> devices;
    leave_promise promise;
  };
  std::vector<leave_call> leave_calls_;
  caf::error error_;                                    ///< Of the latest operations.
  bool outcome_is_due_ = false;                         ///< The host has called, and not heard how it ended.
  proto::CollectiveKind last_kind_ = proto::ALL_REDUCE; ///< Of the latest operation that ended well.
  sequence_number last_ended_;                          ///< The same one's; 0: none yet.
  std::deque<epoch_change::decision> decisions_;        ///< That are to be carried out.
  bool carrying_out_ = false;
  uint64_t control_messages_ = 0; ///< To relays and from them.
  bool open_ = true;              ///< The epoch of now is open, and everybody has been told.
  bool ticking_ = false;
};

/// `devices` and `handles` in rank order.
communicator_actor::behavior_type communicator(communicator_actor::stateful_pointer<communicator_state> self,
                                               communicator_options options,
                                               std::vector<gpu_sim::DeviceMetadata> devices, device_handles handles);

/// The COMMUNICATOR, which refuses the requests of a process that has too many in its mailbox. To be spawned with its
/// options, devices and handles.
class fair_communicator final : public fair_inbox<communicator_actor::stateful_base<communicator_state>> {
public:
  /// Nothing waits outside the mailbox: what a client asks by way of the coordinator comes behind its calls. The
  /// handles of one process's ranks have `rank_caller_state::calls_under_way_max` calls under way each.
  static constexpr inbox_limits limits{.process = {.in_mailbox = 16'384, .waiting_max = 0}, .actor = std::nullopt};

  fair_communicator(caf::actor_config& cfg, communicator_options options, std::vector<gpu_sim::DeviceMetadata> devices,
                    device_handles handles)
    : fair_inbox(cfg, limits), options_(std::move(options)), devices_(std::move(devices)),
      handles_(std::move(handles)) {}

  behavior_type make_behavior() override {
    return communicator(this, std::move(options_), std::move(devices_), std::move(handles_));
  }

private:
  communicator_options options_;
  std::vector<gpu_sim::DeviceMetadata> devices_;
  device_handles handles_;
};

} // namespace ringmaster
