#pragma once

#include "actors/calls/fair_inbox.hpp"
#include "actors/communicators/epoch_actions.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

/// A communicator that is built again after its coordinator was restarted.
struct resumed_communicator {
  recovered_communicator known;
  std::map<device_id, device_handle> handles;          ///< Of the ranks that have come back.
  std::vector<std::pair<device_id, std::string>> lost; ///< The others, with the reason.
};

/// The state of a COMMUNICATOR: it receives, asks the objects that decide, and sends what they decide.
///
///   epoch_change        members, what runs again, what is certain to be done           runtime/epochs
///   operation_runner    operations from the call to the end
///   rank_call_server    the ranks' own calls: which match, who is answered
///   shared_memory_run   moves the data of operations whose ranks are all on this host
///   epoch_actions       carries out what `epoch_change` decides
///   status_reporter     the status, and clients that wait until nothing is in flight
///   member_directory    actors, memories and hosts of the members
///   member_watch        which members are late, what they receive, their clocks
///   watch_ticks         when to look after them
///   call_limits         limits of calls and operations
///   client_waiters      clients that are answered later
///   outbox              plans, records and answers, which are gathered for a moment
class communicator_state {
public:
  static inline const char* name = "communicator";

  /// `devices` and `handles` in rank order. Returns what the actor does with each message.
  communicator_actor::behavior_type start(communicator_actor::pointer self, communicator_options options,
                                          const std::vector<gpu_sim::DeviceMetadata>& devices,
                                          const device_handles& handles);
  /// The same for one that is built again.
  communicator_actor::behavior_type resume(communicator_actor::pointer self, communicator_options options,
                                           resumed_communicator from);
  const epoch_change& epochs() const { return *epochs_; }
  operation_runner& runner() { return *runner_; }
  const status_reporter& reporter() const { return *reporter_; }

private:
  void create_objects();
  communicator_actor::behavior_type handlers();

  // -- calls --
  caf::error group_end();
  proto::CollectiveResponses enqueue(proto::CollectiveRequests& requests);
  /// Limits of calls and operations that have passed.
  void expire();

  // -- members --
  void on_report(const proto::RankReport& x);
  void on_node_report(const proto::ProgressReport& x);
  void on_quiesced(const proto::Quiesced& x);
  void on_down(const caf::down_msg& x);
  /// The process of these has lost its connection to this one, or is silent: they are lost, once it is known whether it
  /// lives.
  void doubt(epoch_actions::loss x);
  void on_member_lost(const proto::MemberLost& x);
  void on_way_lost(const proto::WayLost& x);
  /// The error of calls that fail because of a rank.
  caf::error judge(errc code, proto::Verdict found);
  void tick();
  void note_slow_members();
  void ask_for_progress();

  // -- data of shared-memory operations --
  void on_arrival(const shared_memory_arrival& x);
  void on_arrivals(const shared_memory_arrivals& x);
  /// Returns whether it is of this epoch.
  bool note_arrival(const shared_memory_arrival& x);
  /// A turn of its own, or a job of the movers is done.
  void move_data();

  std::chrono::steady_clock::time_point now() const { return self_->clock().now(); }

  communicator_actor::pointer self_ = nullptr;
  communicator_options options_;
  std::optional<epoch_change> epochs_;
  std::optional<outbox> outbox_;
  std::optional<member_directory> members_;
  std::optional<member_watch> watch_;
  std::optional<call_limits> limits_;
  std::optional<operation_runner> runner_;
  std::optional<rank_call_server> calls_;
  std::optional<shared_memory_run> shared_memory_;
  client_waiters waiters_;
  std::optional<status_reporter> reporter_;
  std::optional<watch_ticks> ticks_;
  std::optional<epoch_actions> actions_;
  std::set<device_id> doubted_; ///< The coordinator was asked whether their process lives.
};

/// The COMMUNICATOR, which refuses the requests of a process that has too many in its mailbox. To be spawned with its
/// options, devices and handles, these in rank order.
class fair_communicator final : public fair_inbox<communicator_actor::stateful_base<communicator_state>> {
public:
  /// No request waits outside the mailbox: what a client asks through the coordinator comes after its calls. The
  /// handles of one process's ranks have `rank_caller_state::calls_under_way_max` calls in flight each.
  static constexpr inbox_limits limits{.process = {.in_mailbox = 16'384, .waiting_max = 0}, .actor = std::nullopt};

  fair_communicator(caf::actor_config& cfg, communicator_options options, std::vector<gpu_sim::DeviceMetadata> devices,
                    device_handles handles)
    : fair_inbox(cfg, limits), options_(std::move(options)), devices_(std::move(devices)),
      handles_(std::move(handles)) {}

  fair_communicator(caf::actor_config& cfg, communicator_options options, resumed_communicator from)
    : fair_inbox(cfg, limits), options_(std::move(options)), resumed_(std::move(from)) {}

  /// A coordinator that may have been replaced orders nothing, and says nothing, until it is certain that it leads.
  caf::invoke_message_result consume(caf::mailbox_element& x) override {
    if (leads_ && !is_of_its_end(x.content()) && !leads_())
      return caf::invoke_message_result::skipped;
    return fair_inbox::consume(x);
  }

  behavior_type make_behavior() override {
    leads_ = options_.leads;
    coordinator_ = options_.coordinator ? options_.coordinator.address() : caf::actor_addr{};
    return resumed_ ? state.resume(this, std::move(options_), std::move(*resumed_))
                    : state.start(this, std::move(options_), devices_, handles_);
  }

private:
  bool is_of_its_end(const caf::type_erased_tuple& what) const {
    return what.match_elements<caf::exit_msg>()
           || (what.match_elements<caf::down_msg>() && what.get_as<caf::down_msg>(0).source == coordinator_);
  }

  communicator_options options_;
  std::function<bool()> leads_;
  caf::actor_addr coordinator_;
  std::vector<gpu_sim::DeviceMetadata> devices_;
  device_handles handles_;
  std::optional<resumed_communicator> resumed_;
};

} // namespace ringmaster
