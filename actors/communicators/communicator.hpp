#pragma once

#include "actors/calls/fair_inbox.hpp"
#include "actors/communicators/call_limits.hpp"
#include "actors/communicators/client_waiters.hpp"
#include "actors/communicators/communicator_options.hpp"
#include "actors/communicators/member_directory.hpp"
#include "actors/communicators/member_watch.hpp"
#include "actors/communicators/operation_outcomes.hpp"
#include "actors/communicators/operation_planner.hpp"
#include "actors/communicators/outbox.hpp"
#include "actors/communicators/rank_call_promises.hpp"
#include "actors/communicators/shared_memory_run.hpp"
#include "runtime/epochs/communicator_status.hpp"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/operations/call_desk.hpp"

#include <deque>
#include <functional>
#include <optional>

namespace ringmaster {

/// The state of a COMMUNICATOR: it receives, asks the objects that decide, and sends what they decide.
///
///   call_desk           the ranks' own calls: which match, who is answered             runtime/operations
///   operation_queue     operations in flight, and those that wait for GroupEnd         runtime/operations
///   epoch_change        members, what runs again, what is certain to be done           runtime/epochs
///   operation_planner   operations of requests, plans of operations
///   shared_memory_run   moves the data of operations whose ranks are all on this host
///   member_directory    actors, memories and hosts of the members
///   member_watch        which members are late, what they receive, their clocks
///   call_limits         limits of calls and operations
///   client_waiters, rank_call_promises   who is answered later
///   operation_outcomes  how operations ended, and what the host has heard of it
///   outbox              plans, records and answers, which are gathered for a moment
class communicator_state {
public:
  static inline const char* name = "communicator";
  /// Calls of one rank that are kept until they have ended. A rank's handle makes less at a time and keeps the others:
  /// `rank_caller_state::calls_under_way_max`.
  static constexpr size_t calls_open_max = 4096;

  communicator_actor::pointer self = nullptr;
  communicator_options options;

  /// `devices` and `handles` in rank order.
  void start(const std::vector<gpu_sim::DeviceMetadata>& devices, const device_handles& handles);
  const epoch_change& epochs() const { return *epochs_; }

  // -- status (communicator_status.cpp) --
  gpu_sim::GetCommStatusResponse status() const;
  /// The same, for the host: once it has heard of the end of its calls, the next call starts a new batch.
  gpu_sim::GetCommStatusResponse report_outcome();
  proto::CommunicatorStatus whole_status() const;

  // -- the host's calls (communicator_host_calls.cpp) --
  caf::error group_start();
  caf::error group_end();
  caf::result<proto::CollectiveResponse> collective(proto::CollectiveRequest& request);
  caf::result<proto::CollectiveResponses> collectives(proto::CollectiveRequests& requests);
  /// The operation of a request over the ranks of `in_epoch`, or of now where it is 0.
  caf::expected<operation> operation_for(const proto::CollectiveRequest& request, epoch_number in_epoch);
  void wait(caf::timespan limit, client_waiters::status_promise promise);
  void destroy(const std::string& reason, client_waiters::destroy_promise promise);

  // -- the ranks' own calls (communicator_rank_calls.cpp) --
  void call(const proto::RankCall& x, rank_call_promises::promise_type promise);

  // -- streams and members (communicator_members.cpp) --
  void on_report(const proto::RankReport& x);
  void on_node_report(const proto::ProgressReport& x);
  void on_progress(const proto::Progress& x);
  void on_quiesced(const proto::Quiesced& x);
  void on_down(const caf::down_msg& x);
  void on_arrival(const shared_memory_arrival& x);
  void on_arrivals(const shared_memory_arrivals& x);
  void lose(device_id device, const std::string& cause, const std::string& noticed_by, bool fence);
  /// Without a reason the members stay after all.
  void leave(const proto::LeaveRequest& x, client_waiters::leave_promise promise);
  /// Reports an event to `epochs_`, after sending the plans that have gathered: they were made for the members of now.
  void change(const std::function<epoch_change::decisions(epoch_change&)>& event);

  // -- itself (communicator.cpp) --
  /// Sends what has gathered, unless it may wait for calls that come while earlier operations are in flight: see
  /// `outbox::may_wait`. It waits for one `suspect.interval` at most.
  void flush_gathered();
  /// The data of shared-memory operations moves on: a turn of its own, or the job of this number is done.
  void resume_moving(uint64_t number);
  void tick();
  /// Limits of calls and operations that have passed.
  void expire();
  void note_relayed(size_t messages) { control_messages_ += messages; }

private:
  friend struct epoch_actions;
  friend struct call_actions;
  using time_point = std::chrono::steady_clock::time_point;

  /// Enqueues and starts one request of the host.
  proto::CollectiveResponse start_call(proto::CollectiveRequest& request);
  /// The request goes to the journal. `rank_group`: see `operation_queue`; `in_epoch`: whose ranks it is for, 0: of
  /// now.
  caf::expected<sequence_number> enqueue(proto::CollectiveRequest& request, uint64_t rank_group, epoch_number in_epoch);
  /// A new attempt starts in the open epoch.
  void run(operation& op);
  /// What was called and has not started, if it may.
  void run_waiting();
  void serve_calls();
  /// Returns whether it is of this epoch.
  bool note_arrival(const shared_memory_arrival& x);
  void move_data();
  void carry_out(epoch_change::decisions decisions);
  void flush();
  /// Answers clients that wait, if nothing is in flight.
  void settle();
  void set_timer();
  void keep_ticking();
  void add_member(const gpu_sim::DeviceMetadata& metadata, const device_handle& handle);
  communicator_view view() const;
  std::vector<device_id> present_members() const; ///< Without those that wait for a spare.
  operation_queue& operations() { return epochs_->operations(); }
  const operation_queue& operations() const { return epochs_->operations(); }
  bool something_runs() const { return !operations().nothing_in_flight() || epochs_->state().is_changing(); }
  time_point now() const { return self->clock().now(); }

  std::optional<member_directory> members_;
  std::optional<operation_planner> planner_;
  std::optional<epoch_change> epochs_;
  std::optional<call_desk> desk_;
  std::optional<member_watch> watch_;
  std::optional<shared_memory_run> shared_memory_;
  std::optional<outbox> outbox_;
  rank_call_promises rank_calls_;
  client_waiters waiters_;
  call_limits limits_;
  operation_outcomes outcomes_;
  std::deque<epoch_change::decision> decisions_; ///< To be carried out.
  bool carrying_out_ = false;
  uint64_t control_messages_ = 0;  ///< To relays and from them.
  bool epoch_is_announced_ = true; ///< The epoch is open, and members and ranks' calls know of it.
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
  /// No request waits outside the mailbox: what a client asks through the coordinator comes after its calls. The
  /// handles of one process's ranks have `rank_caller_state::calls_under_way_max` calls in flight each.
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
