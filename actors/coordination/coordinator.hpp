#pragma once

#include "actors/calls/fair_inbox.hpp"
#include "actors/communicators/communicator.hpp"
#include "actors/coordination/access_control.hpp"
#include "actors/coordination/client_directory.hpp"
#include "actors/coordination/cluster_members.hpp"
#include "actors/coordination/cluster_recovery.hpp"
#include "actors/coordination/drain_calls.hpp"
#include "actors/coordination/info_calls.hpp"
#include "actors/coordination/init_calls.hpp"
#include "actors/coordination/liveness_watch.hpp"
#include "actors/coordination/metadata_log.hpp"
#include "actors/coordination/rank_rendezvous.hpp"
#include "actors/coordination/spare_calls.hpp"
#include "runtime/coordination/communicator_registry.hpp"
#include "runtime/coordination/device_registry.hpp"
#include "runtime/coordination/pending_calls.hpp"
#include "runtime/journal/journal_health.hpp"
#include "runtime/memory/host_copies.hpp"

#include <functional>

namespace ringmaster {

struct coordinator_options {
  communicator_options communicators;                     ///< Of every new communicator.
  caf::timespan request_limit = std::chrono::seconds{10}; ///< For a device to answer a client.
  caf::timespan idle_interval{0};              ///< suspicion::options::idle_interval; 0: only communicators ask.
  uint64_t host_copies_bytes_max = 1ull << 30; ///< Host-to-device copies kept for spares.
  uint32_t communicators_max = 4096;           ///< Alive at once.
  std::shared_ptr<id_ledger> ids = std::make_shared<id_ledger>(); ///< It outlives the coordinator.
  uint64_t pid = 0;                                               ///< For the journal.
  uint64_t meet_bytes = 0;        ///< The largest input that ranks in processes exchange in shared memory; 0: none.
  bool own_nodes_may_end = false; ///< Nodes of this process may be drained; for tests.
  wall_clock clock;
  std::string route = "auto"; ///< The configuration's route.use, which applies to all nodes.
  bool insecure = false;      ///< Processes that connect prove nothing; for the status.
  std::string encryption;     ///< Of connections, for the status; empty: they are not encrypted.
  /// Who is connected from this process; none: it is no longer connected. Not set: all may do everything. For tests.
  std::function<std::optional<connected_peer>(const caf::node_id&)> identify;
  std::string job; ///< The launcher's job that it serves: ranks of others may not join (check_job).
  std::function<void(const rank_departure&)> on_departure; ///< May be empty.
  journal_actor journal;                                   ///< May be invalid.
  std::shared_ptr<journal_health> records;                 ///< Whether the journal loses records; may be null.
  std::shared_ptr<metadata_store> store; ///< Of what it must find again; null: it ends with its process.
  metadata_actor writer;                 ///< Of the store; invalid: one of its own. For tests.
  cluster_metadata found;                ///< What the store has of the former run (start_incarnation).
  proto::ClusterIdentity identity;       ///< Its cluster_id is 0 without a store.
  bool stop_without_store = false;       ///< It ends if the store cannot be written; else it goes on, and says so.
  caf::timespan rejoin_limit = std::chrono::milliseconds{1500}; ///< For nodes to come back after a restart.
  caf::timespan orphan_limit = std::chrono::seconds{60};        ///< For clients to come back.
  caf::actor silence_watch; ///< Of connections (make_silence_watch); may be invalid.
};

/// The receiver of calls to the journal, of which there is one.
struct the_journal {
  bool operator==(const the_journal&) const = default;
};

/// Requests of clients that were passed on and have not been answered. If the receiver ends first or is late, the
/// coordinator answers.
struct forwarded_calls {
  pending_calls<device_id, request_peer> devices;
  pending_calls<communicator_id, request_peer> communicators;
  pending_calls<the_journal, request_peer> journal;
};

/// The state of the COORDINATOR: the registries, and an object for each subject. Decisions are in
/// runtime/coordination/; these objects receive, ask them and send.
class coordinator_state {
public:
  static inline const char* name = "coordinator";

  /// Calls of one peer that a receiver has not answered. It is above the limit of commands that a stream queues, so
  /// that the stream's own error comes first.
  static constexpr size_t passed_on_max = 8192;

  /// Requests of one peer that wait here for ranks, devices and nodes.
  static constexpr size_t waiting_max = 4096;

  coordinator_actor::pointer self = nullptr;
  coordinator_options options;
  device_registry devices;
  communicator_registry communicators;
  host_copies copies{0};
  request_peer calling_peer; ///< The sender of the current request; empty if the message is not a request.
  forwarded_calls calls;

  access_control access{*this};
  metadata_log metadata{*this};
  cluster_recovery recovery{*this};
  cluster_members members{*this};
  client_directory clients{*this};
  node_silences silences{*this};
  liveness_watch liveness{*this};
  init_calls inits{*this};
  spare_calls spares{*this};
  drain_calls drains{*this};
  rank_rendezvous ranks{*this};
  rank_mailboxes mailboxes{*this};
  info_calls info{*this};

  void start(coordinator_options opts);
  void on_down(const caf::down_msg& x);
  uint64_t now_ns() const { return options.clock.unix_ns(self->clock().now()); }

  void journal(proto::Record record);
  /// Call it before ids are given: it tells the journal how far they may go.
  void mark_ids();

  /// Of a request that waits here. Its limit is an `expire` message with this number.
  uint64_t next_number() { return ++last_number_; }
  /// Errors: too_many, if the peer that asks has `waiting_max` requests that wait.
  caf::error check_waiting() const;
  /// The limit of a request that waits here has passed.
  void expire(uint64_t number);
  /// The limits of forwarded calls.
  void expire_calls();
  /// Looks whether the store is where it belongs, and handles what has waited until it was certain that this one leads.
  void look_again();
  /// Makes sure that calls expire when their limits have passed.
  template <class Receiver>
  void keep_time(pending_calls<Receiver, request_peer>& of) {
    if (auto when = of.timer())
      self->scheduled_send(self, *when, atom::expire_v);
  }

  /// The communicator can do it no longer: these devices forget it, and drop its commands.
  void stop_streams_of(communicator_id id, const device_ids& members);
  /// Changes what the store has of a communicator that is alive.
  void store_communicator(communicator_id id, const std::function<void(proto::StoredCommunicator&)>& change);
  /// Errors: unknown_communicator.
  caf::expected<communicator_actor> communicator_of(communicator_id id) const;
  /// Frees its devices. `reason`: why it failed; none if it has stopped its streams itself.
  void communicator_ended(communicator_id id, const caf::error& reason);
  /// Devices have joined, or have left their communicators: serves requests for spares and drained nodes.
  void devices_freed();

  /// Whether a spare may need what the host copies to this device: it is free, or the policy of all of its
  /// communicators is "replace".
  bool may_replace(device_id device) const;
  /// A place in this communicator no longer waits for the device's inputs.
  void place_filled(device_id device, communicator_id communicator);
  /// A command has been called that will change the range, if it lies within the device's memory.
  void will_change(device_id device, uint64_t address, uint64_t bytes);

private:
  /// A failed communicator cannot stop its streams, nor answer its callers.
  void communicator_failed(communicator_id id, const caf::error& reason, const device_ids& left);

  uint64_t last_number_ = 0;
};

coordinator_actor::behavior_type coordinator(coordinator_actor::stateful_pointer<coordinator_state> self,
                                             coordinator_options options);

/// The COORDINATOR, which alternates between the requests of its clients. Spawn it with its options.
class fair_coordinator final : public fair_inbox<coordinator_actor::stateful_base<coordinator_state>> {
public:
  /// The messages of a client in this process come from its own actor and from that of its call gate. They keep their
  /// order while they are within the limit of one actor, so that limit is above `client::calls_under_way_max`.
  static constexpr inbox_limits limits{.process = {.in_mailbox = 16, .waiting_max = 16'384},
                                       .actor = inbox_limits::peer_limits{.in_mailbox = 1024, .waiting_max = 16'384}};

  fair_coordinator(caf::actor_config& cfg, coordinator_options options)
    : fair_inbox(cfg, limits), options_(std::move(options)) {}

  behavior_type make_behavior() override { return coordinator(this, std::move(options_)); }

  caf::invoke_message_result consume(caf::mailbox_element& x) override {
    if (state.recovery.holds(x))
      return caf::invoke_message_result::skipped;
    const auto result = fair_inbox::consume(x);
    state.metadata.flush();
    return result;
  }

private:
  bool waits_its_turn(const caf::mailbox_element& x) const override { return !cluster_recovery::is_awaited(x); }
  void handles(const request_peer& peer) override { state.calling_peer = peer; }
  caf::error admits(const caf::mailbox_element& x) override { return state.access.admit(x); }

  coordinator_options options_;
};

} // namespace ringmaster
