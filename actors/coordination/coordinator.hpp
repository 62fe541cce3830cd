#pragma once

#include "actors/calls/fair_inbox.hpp"
#include "actors/communicators/communicator.hpp"
#include "runtime/coordination/communicator_registry.hpp"
#include "runtime/coordination/device_registry.hpp"
#include "runtime/coordination/drain_desk.hpp"
#include "runtime/coordination/ownership.hpp"
#include "runtime/coordination/pending_calls.hpp"
#include "runtime/coordination/rendezvous_desk.hpp"
#include "runtime/coordination/shared_mailboxes.hpp"
#include "runtime/coordination/spare_desk.hpp"
#include "runtime/journal/journal_health.hpp"
#include "runtime/memory/host_copies.hpp"

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <variant>

namespace ringmaster {

struct coordinator_options {
  communicator_options communicators;                             ///< What every communicator starts with.
  caf::timespan request_limit = std::chrono::seconds{10};         ///< For a device to answer a client.
  uint64_t host_copies_bytes_max = 1ull << 30;                    ///< Host-to-device copies kept for spares.
  uint32_t communicators_max = 4096;                              ///< Alive at once.
  std::shared_ptr<id_ledger> ids = std::make_shared<id_ledger>(); ///< It outlives the coordinator.
  uint64_t pid = 0;                                               ///< For the journal.
  uint64_t meet_bytes = 0;        ///< The largest input for which ranks of processes meet in memory; 0: none.
  bool own_nodes_may_end = false; ///< Drained, those of this process; for tests.
  wall_clock clock;
  std::string route = "auto"; ///< The configuration's route.use, which is all nodes'.
  std::string job;            ///< Of the launcher that it serves: ranks of others may not join (check_job).
  std::function<void(const rank_departure&)> on_departure; ///< May be empty.
  journal_actor journal;                                   ///< May be invalid.
  std::shared_ptr<journal_health> records;                 ///< What is not in the journal; may be null.
  caf::actor silence_watch;                                ///< Of connections (make_silence_watch); may be invalid.
};

/// Whom journal_calls ask.
struct the_journal {
  bool operator==(const the_journal&) const = default;
};

/// The state of the COORDINATOR. What it knows and decides is in objects of runtime/coordination/, each told what
/// happens and asked what to do; here messages are taken apart, sent and answered. It answers clients for devices that
/// die while they are asked, and gives back what clients leave behind.
class coordinator_state {
public:
  static inline const char* name = "coordinator";

  coordinator_actor::pointer self = nullptr;
  coordinator_options options;
  device_registry devices;
  communicator_registry communicators;
  request_peer calling_peer; ///< Whose request is being handled; nobody: it is no request.
  /// Calls of one peer that a receiver has not answered: above the commands that a stream queues, which says so itself.
  static constexpr size_t passed_on_max = 8192;

  /// Requests of one peer that wait here for ranks, devices and nodes.
  static constexpr size_t waiting_max = 4096;

  pending_calls<device_id, request_peer> device_calls;
  pending_calls<communicator_id, request_peer> communicator_calls;
  pending_calls<the_journal, request_peer> journal_calls;
  host_copies copies{0};
  std::map<std::string, caf::actor_addr> notices; ///< Who is found by a name; gone when they are.
  std::map<node_id, uint64_t> silent_since;       ///< Nodes that owe `cluster_status` an answer: wall clock.

  void start(coordinator_options opts);
  void on_down(const caf::down_msg& x);
  void expire(uint64_t number);
  /// Says for which ranks a group waits that gathers.
  void tell_missing_ranks(uint64_t number) const;
  /// Of calls that were passed on.
  void expire_calls();
  /// Sees to it that calls are told when their limits have passed.
  template <class Receiver>
  void keep_time(pending_calls<Receiver, request_peer>& calls) {
    if (auto when = calls.timer())
      self->scheduled_send(self, *when, atom::expire_v);
  }
  void journal(proto::Record record);
  /// To be called before ids are given: tells the journal how far they may go.
  void mark_ids();

  /// Who is found by that name from now on.
  void notice(const std::string& name_of_it, const caf::strong_actor_ptr& who);
  /// Null: nobody is there yet, or any more.
  caf::strong_actor_ptr noticed(const std::string& name_of_it) const;
  /// A node that comes is answered before others hear of it.
  caf::result<proto::NodeJoinResponse, caf::strong_actor_ptr> let_in(const proto::NodeJoinRequest& x,
                                                                     const caf::strong_actor_ptr& node);
  proto::DeviceJoinResponse new_device(const proto::DeviceJoinRequest& x);

  // -- nodes and devices (coordinator_devices.cpp) --
  proto::NodeJoinResponse node_joined(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node);
  /// Tells every node where the others are.
  void introduce_nodes();
  /// One has lost its direct way to another, or has found one.
  void nodes_apart(const proto::NodeApart& x);
  void device_ready(const proto::DeviceReady& x, const device_handle& handle);
  void member_lost(const proto::MemberLost& x);
  /// Whether a spare may want what the host copies to this device: it is free, or the policy of all of its
  /// communicators says so.
  bool may_replace(device_id device) const;
  /// A command that has been called will change the range, if it lies within the device's memory.
  void will_change(device_id device, uint64_t address, uint64_t bytes);

  // -- CommInit (coordinator_init.cpp) --
  /// Waits for a sign of life of each device that it would take: one that gives none is ended, and a free one taken
  /// in its place. A hung device that is in no communicator is noticed nowhere else.
  caf::result<gpu_sim::CommInitResponse> comm_init(const gpu_sim::CommInitRequest& x);
  /// The same of devices that have just been heard of.
  gpu_sim::CommInitResponse init_at_once(const gpu_sim::CommInitRequest& x);
  /// Puts the refusal on record.
  gpu_sim::CommInitResponse refuse_init(const gpu_sim::CommInitRequest& x, const caf::error& problem);

  // -- communicators (coordinator_communicators.cpp) --
  /// Communicators of another one's devices.
  caf::result<proto::CommDeriveResponse> derive(const proto::CommDeriveRequest& x);
  /// Errors: unknown_communicator.
  caf::expected<communicator_actor> communicator_of(communicator_id id) const;
  /// Frees its devices. `reason`: why it failed; none where it has stopped its streams itself.
  void communicator_ended(communicator_id id, const caf::error& reason);
  /// Notes which inputs of an operation the host could give to a spare.
  void note_checkpoints(const proto::CollectiveRequest& x, sequence_number sequence);
  void outputs_written(const proto::OutputsWritten& x);

  // -- spares (coordinator_spares.cpp) --
  caf::result<proto::SpareResponse, device_handle> spare(const proto::SpareRequest& x);

  // -- nodes that are to end (coordinator_drains.cpp) --
  caf::result<proto::DrainResponse> drain(const proto::DrainRequest& x);

  // -- ranks that processes of their own play (coordinator_ranks.cpp) --
  caf::result<proto::RendezvousResponse> rendezvous(const proto::RendezvousRequest& x);
  caf::result<proto::FinalizeResponse> finalize(const proto::FinalizeRequest& x);
  /// Ends the waiting for a rank that will not come.
  proto::RankAbsentResponse rank_absent(const proto::RankAbsentRequest& x);
  /// Where they meet without a message.
  proto::MeetingResponse meeting(const proto::MeetingRequest& x);
  void met(const proto::MetReport& x);
  /// Something else than its ranks' calls is about to happen on the communicator's devices, or on this one: the ranks
  /// do not meet any more.
  void drop_rank_calls(communicator_id id);
  void drop_rank_calls(device_id id);

  // -- what clients have made (coordinator_clients.cpp) --
  /// Whose will be what the message that is being handled asks for. None: it will outlive whoever asks.
  caf::actor_addr calling_client() const;
  void own(const caf::actor_addr& client, communicator_id what);
  void own(const caf::actor_addr& client, owned_range what);
  void freed(owned_range what);

  // -- who is there (coordinator_info.cpp) --
  caf::result<proto::ClusterInfo> wait_for_devices(const proto::ClusterInfoRequest& x);

  // -- what everybody is doing (coordinator_status.cpp) --
  /// As far as communicators know it, and which nodes have not answered within a moment.
  caf::result<proto::ClusterStatus> cluster_status();
  /// Asks a node for a sign of life: `then` is told within a moment how long it has been silent, 0 where it answers or
  /// has ended.
  void find_silence(node_id id, std::function<void(uint64_t silent_ns)> then);
  /// What went wrong with a node; where it is silent, with that. `then` is called within a moment.
  void say_silence(node_id id, const caf::error& problem, std::function<void(const caf::error&)> then);

  uint64_t now_ns() const { return options.clock.unix_ns(self->clock().now()); }

private:
  struct info_waiter {
    request_peer peer;
    proto::ClusterInfoRequest request;
    caf::typed_response_promise<proto::ClusterInfo> promise;
  };

  /// Errors: too_many, where the peer that asks has `waiting_max` requests that wait.
  caf::error check_waiting() const;

  /// Until the node has answered, however late, it counts as silent from then on.
  void note_silence(node_id id, uint64_t since_ns);

  /// How a device went. `noticed_by` is empty where it has left in good order.
  struct departure {
    std::string cause;
    std::string noticed_by;
    uint64_t noticed_ns = 0;
  };

  void node_gone(node_id id, const caf::error& reason, bool left);
  void device_gone(device_id id, const departure& how);
  /// It may still be running: ends it.
  void fence(device_id id, const departure& how);

  /// A CommInit that waits for signs of life.
  struct init_call {
    request_peer peer;
    gpu_sim::CommInitRequest request;
    caf::actor_addr owner; ///< None: what it makes outlives whoever asks.
    caf::typed_response_promise<gpu_sim::CommInitResponse> promise;
    std::set<device_id> living = {}; ///< They have answered.
    size_t asked = 0;                ///< So many have not.
    std::string silent = {};         ///< Who was given up, for people; with a semicolon before each.
    bool waits = false;              ///< For a device that joins in place of one that was given up, ...
    bool expired = false;            ///< ... and not any more.
  };

  /// How long a device may be silent until it is asked a second time, and again until it is given up, and a call waits
  /// for another one: for less, its process may have paused. CommInit is answered within the limit of requests.
  caf::timespan silence_max() const;
  /// Who would be the ranks as things are now. Errors: those of CommInit.
  caf::expected<device_ids> ranks_for(const gpu_sim::CommInitRequest& x) const;
  gpu_sim::CommInitResponse init_of(const gpu_sim::CommInitRequest& x, const device_ids& ranks);
  /// Asks those of the ranks that have not answered this call; makes the communicator where all have.
  void choose(uint64_t number);
  void ask_for_sign(uint64_t number, device_id id, bool again);
  void end_init(uint64_t number, gpu_sim::CommInitResponse answer);
  /// A device has joined.
  void serve_inits();

  /// Where blocks must go from memory to memory. Errors: unreachable, naming the first device that is out of reach.
  caf::error check_reach(const device_ids& ranks) const;
  caf::error first_out_of_reach(const device_ids& ranks) const;
  /// The same where blocks must go over bulk connections.
  caf::error check_links(const device_ids& ranks) const;
  /// Ranks 0..n-1 on these devices, which have been checked.
  gpu_sim::CommInitResponse make_communicator(const device_ids& ranks, known_communicator like);
  /// Whose devices are these: `members` is the present state of the communicator they are derived from.
  proto::CommDeriveResponse derive_from(const gpu_sim::GetCommStatusResponse& members,
                                        const proto::CommDeriveRequest& x, const caf::actor_addr& owner);
  /// It cannot stop its streams, nor answer whoever waits for it.
  void communicator_failed(communicator_id id, const caf::error& reason, const device_ids& members);
  /// A place in this communicator does not wait for the device's inputs any more.
  void place_filled(device_id device, communicator_id communicator);

  /// Devices have joined, or left their communicators: spares may be there, and drained nodes may end.
  void serve_spares();
  /// Does for a request what the desk says.
  void act(uint64_t number, const spare_desk::step& step);
  void restore(uint64_t number, device_id id);
  /// Copies a range from a device that leaves to the one that takes its place, piece by piece, from `done` bytes on.
  void hand_on(uint64_t number, const gpu_sim::DeviceMetadata& from, device_id to,
               const proto::SpareRequest::Range& range, uint64_t done);
  bool spare_wanted(uint64_t number) const;

  // Nodes that are to end.
  /// Errors: refused, for one that is not there and for one that cannot be drained.
  caf::expected<node_id> node_to_drain(const std::string& name_of_it) const;
  void serve_drains();
  void let_leave(node_id node, communicator_id communicator, const device_ids& members);
  void cancel_drain(node_id node);
  void drain_expired(uint64_t number);
  /// Why the node, or one of its devices, has ended, as people read it.
  std::string cause_of_end(node_id node, const caf::error& reason) const;
  /// The node is gone; maybe somebody has waited for that.
  void node_drained(node_id node, const std::string& place, const caf::error& reason);

  /// `made`: their communicator, for those that have come.
  void answer_ranks(const std::vector<uint64_t>& waiters, const gpu_sim::CommInitResponse& made,
                    const caf::error& problem);
  /// Ends the communicator, then tells those that have waited for it.
  void end_group(const rendezvous_desk::left_group& x);
  void rank_lost(device_id device, const std::string& cause);
  void tell_departures();

  void monitor_client(const caf::actor_addr& client, client_id id);
  client_id id_of_client(const caf::actor_addr& client);
  void client_gone(client_id client, const std::string& why);
  void give_back(const std::set<owned_range>& ranges);
  /// Who owns nothing any more may go unnoticed.
  void forget_idle_clients();

  proto::ClusterInfo info() const;
  /// So many free devices at most, and nothing else.
  proto::ClusterInfo free_info(uint32_t devices_max) const;
  void deliver_info(const proto::ClusterInfoRequest& x, caf::typed_response_promise<proto::ClusterInfo> promise);
  void serve_info_waiters();
  void note_gone(proto::ClusterInfo::Gone x);
  /// Of a node that is here, or was lately.
  std::string name_of_node(node_id id) const;

  std::map<uint64_t, init_call> init_calls_;
  spare_desk spares_{devices};
  std::map<uint64_t, caf::typed_response_promise<proto::SpareResponse, device_handle>> spare_promises_;
  std::map<uint64_t, info_waiter> info_waiters_;
  /// Somebody who waits until a node is drained.
  struct drain_call {
    request_peer peer;
    node_id node;
    caf::timespan limit{0};
    caf::typed_response_promise<proto::DrainResponse> promise;
  };
  drain_desk drains_{devices, communicators};
  std::map<uint64_t, drain_call> drain_calls_;
  /// A rank that waits for the others, at the beginning or at the end.
  struct waiting_rank {
    request_peer peer;
    caf::timespan limit;
    std::variant<caf::typed_response_promise<proto::RendezvousResponse>,
                 caf::typed_response_promise<proto::FinalizeResponse>>
      promise;
  };

  rendezvous_desk ranks_;
  shared_mailboxes meetings_;
  std::map<uint64_t, waiting_rank> waiting_ranks_;
  uint64_t waits_ = 0;
  std::deque<proto::ClusterInfo::Gone> latest_gone_;
  ownership owned_;
  std::map<caf::actor_addr, client_id> clients_; ///< Monitored: those that own something.
  client_id last_client_;
};

coordinator_actor::behavior_type coordinator(coordinator_actor::stateful_pointer<coordinator_state> self,
                                             coordinator_options options);

/// The COORDINATOR, which takes the requests of its clients by turns. To be spawned with its options.
class fair_coordinator final : public fair_inbox<coordinator_actor::stateful_base<coordinator_state>> {
public:
  /// What a client of this process sends comes from its own actor and from that of its call gate, and keeps its order
  /// while it is within the limit of one actor; so that limit is above `client::calls_under_way_max`.
  static constexpr inbox_limits limits{.process = {.in_mailbox = 16, .waiting_max = 16'384},
                                       .actor = inbox_limits::peer_limits{.in_mailbox = 1024, .waiting_max = 16'384}};

  fair_coordinator(caf::actor_config& cfg, coordinator_options options)
    : fair_inbox(cfg, limits), options_(std::move(options)) {}

  behavior_type make_behavior() override { return coordinator(this, std::move(options_)); }

private:
  void handles(const request_peer& peer) override { state.calling_peer = peer; }

  coordinator_options options_;
};

} // namespace ringmaster
