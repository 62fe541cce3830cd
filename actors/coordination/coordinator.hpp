#pragma once

#include "actors/communicators/communicator.hpp"
#include "runtime/coordination/ownership.hpp"
#include "runtime/memory/host_copies.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>

namespace ringmaster {

struct coordinator_options {
  communicator_options communicators;                     ///< What every communicator starts with.
  caf::timespan request_limit = std::chrono::seconds{10}; ///< For a device to answer a client.
  uint64_t host_copies_bytes_max = 256u << 20;            ///< Host-to-device copies kept for spares.
  uint32_t communicators_max = 4096;                      ///< Alive at once.
  proto::JournalState known;                              ///< Ids of earlier runs in the same journal: new ones start above.
  uint64_t pid = 0;                                       ///< For the journal.
  wall_clock clock;
  journal_actor journal;                                  ///< May be invalid.
};

/// The state of the COORDINATOR: who is there, and who belongs to which communicator. It answers clients for devices
/// that die while they are asked.
class coordinator_state {
public:
  static inline const char* name = "coordinator";

  struct device_entry {
    gpu_sim::DeviceMetadata metadata;
    device_handle handle;
    uint64_t node = 0;
    std::set<uint64_t> communicators; ///< None: free.
    std::map<uint64_t, std::function<void(const std::string&)>> calls; ///< Unanswered: how to answer if it dies.
  };

  struct node_entry {
    proto::NodeJoinRequest about; ///< With the name that it goes by.
    caf::strong_actor_ptr handle;
  };

  struct communicator_entry {
    communicator_actor handle;
    proto::FailurePolicy policy = proto::SHRINK;
    bool deterministic = false;
    bool outlives_client = false;
    std::vector<uint64_t> lost; ///< Devices whose copies a spare may want.
  };

  struct info_waiter {
    proto::ClusterInfoRequest request;
    caf::typed_response_promise<proto::ClusterInfo> promise;
  };

  coordinator_actor::pointer self = nullptr;
  coordinator_options options;
  std::map<uint64_t, device_entry> devices;
  std::map<uint64_t, node_entry> nodes;
  std::map<uint64_t, communicator_entry> communicators;
  host_copies copies{0};

  // -- communicators (coordinator_communicators.cpp) --
  gpu_sim::CommInitResponse comm_init(const gpu_sim::CommInitRequest& x);
  /// Communicators of another one's devices.
  caf::result<proto::CommDeriveResponse> derive(const proto::CommDeriveRequest& x);
  /// Errors: unknown_communicator.
  caf::expected<communicator_actor> communicator_of(uint64_t id) const;
  /// Errors: unknown_device, saying how it went if it was there once.
  caf::expected<device_entry*> device_of(uint64_t id);

  /// Whether a spare may want what the host copies to this device: it is free, or the policy of all of its communicators
  /// says so.
  bool may_replace(uint64_t device) const;
  /// Keeps how to answer a client if the device dies first.
  uint64_t note_call(device_entry& device, std::function<void(const std::string&)> fail);
  /// Whether the client still waits for this answer.
  bool call_ended(uint64_t device, uint64_t call);

  proto::NodeJoinResponse node_joined(const proto::NodeJoinRequest& x, const caf::strong_actor_ptr& node);
  /// Tells every node where the others are.
  void introduce_nodes();
  uint64_t give_device_id(const proto::DeviceJoinRequest& x);
  void device_ready(const proto::DeviceReady& x, const device_handle& handle);
  void on_down(const caf::down_msg& x);
  /// Its devices are free. `reason`: empty where it has stopped them itself.
  void communicator_ended(uint64_t id, const std::string& reason);
  void member_lost(const proto::MemberLost& x);
  caf::result<proto::SpareResponse, device_handle> spare(const proto::SpareRequest& x);
  void outputs_written(const proto::OutputsWritten& x);
  /// A command that has been called will change the range, if it lies within the device's memory.
  void will_change(uint64_t device, uint64_t address, uint64_t bytes);
  /// Notes which inputs of an operation the host could give to a spare.
  void note_checkpoints(const proto::CollectiveRequest& x, uint64_t sequence);
  proto::ClusterInfo info() const;
  caf::result<proto::ClusterInfo> wait_for_devices(const proto::ClusterInfoRequest& x);

  // -- what clients have made (coordinator_clients.cpp) --
  /// Whose will be what the message that is being handled asks for. None: it will outlive whoever asks.
  caf::actor_addr calling_client() const;
  /// A communicator_id or an owned_range; the client is monitored as long as it owns something.
  template <class What>
  void own(const caf::actor_addr& client, What what);
  void freed(owned_range what);

  void expire(uint64_t waiter);
  void journal(proto::Record record);
  void start_ids_above(const proto::JournalState& known);

private:
  using device_ids = std::vector<uint64_t>;

  /// The free devices with the lowest ids. Errors: refused, with the numbers.
  caf::expected<device_ids> free_devices(size_t wanted, const std::string& who) const;
  /// Whether communicators of these ranks can be made. Errors: a device that is not there, or twice in one; too many.
  caf::error check_new(const std::vector<device_ids>& groups);
  /// Ranks 0..n-1 on these devices, which have been checked.
  gpu_sim::CommInitResponse make_communicator(const device_ids& ranks, const communicator_entry& like);
  /// Whose devices are these: `members` is the present state of the communicator they are derived from.
  proto::CommDeriveResponse derive_from(const gpu_sim::GetCommStatusResponse& members, const proto::CommDeriveRequest& x,
                                        const caf::actor_addr& owner);
  /// A place in this communicator is not waiting for the device's copies any more.
  void forget_lost(uint64_t device, uint64_t communicator);

  /// A lost member's place that waits for a device, or for the device's inputs.
  struct spare_search {
    proto::SpareRequest request;
    caf::typed_response_promise<proto::SpareResponse, device_handle> promise;
    std::set<uint64_t> tried;
    proto::SpareResponse answer; ///< With the device whose inputs are being restored.
    device_handle handle;
    bool restorable = true;      ///< The host has all inputs.
    bool expired = false;        ///< It waits no longer for a device.
    size_t copies_pending = 0;   ///< 0: no device has been found yet.
    uint64_t last_resort = 0;    ///< Seems to live, but could not take its inputs; 0: none.
    std::string last_problem;    ///< Why not.
  };

  /// `noticed_by` is empty where the device has left in good order.
  void device_gone(uint64_t id, const std::string& cause, const std::string& noticed_by, uint64_t noticed_ns);
  uint64_t now_ns() const { return options.clock.unix_ns(self->clock().now()); }
  void deliver_info(const proto::ClusterInfoRequest& x, caf::typed_response_promise<proto::ClusterInfo> promise);
  void note_gone(proto::ClusterInfo::Gone x);
  void client_gone(client_id client, const std::string& why);
  void give_back(const std::set<owned_range>& ranges);
  /// It owns nothing any more: it may go unnoticed.
  void forget_idle_clients();
  /// It may still be running: ends it.
  void fence(uint64_t id, const std::string& cause, const std::string& noticed_by, uint64_t noticed_ns);
  /// Any with enough memory that is in no communicator; 0: none.
  uint64_t free_device(const spare_search& search) const;
  void find_spare(uint64_t number);
  void restore(uint64_t number, uint64_t id);
  void restored(uint64_t number, uint64_t id, const std::string& problem);
  void hand_over(uint64_t number, uint64_t id, const std::string& inputs_error);
  void end_search(uint64_t number, const std::string& error);
  void search_expired(uint64_t number);
  /// Devices have joined, or left their communicators.
  void serve_searches();

  std::map<uint64_t, std::string> gone_; ///< How devices went, the latest of them.
  std::deque<proto::ClusterInfo::Gone> latest_gone_;
  ownership owned_;
  std::map<caf::actor_addr, client_id> clients_; ///< Monitored.
  uint64_t client_ids_ = 0;
  std::map<uint64_t, std::string> failed_; ///< Communicators that ended by themselves, and why.
  std::map<uint64_t, info_waiter> waiters_;
  std::map<uint64_t, spare_search> searches_;
  uint64_t waits_ = 0;
  uint64_t calls_ = 0;
  uint64_t device_ids_ = 0;      ///< The highest.
  std::set<uint64_t> given_ids_; ///< Every one ever given: eight bytes for a device that has lived is not much.
  uint64_t node_ids_ = 0;
  uint64_t communicator_ids_ = 0;
};

/// Whether the range lies within the device's memory.
bool within(const gpu_sim::DeviceMetadata& device, uint64_t address, uint64_t bytes);

coordinator_actor::behavior_type coordinator(coordinator_actor::stateful_pointer<coordinator_state> self,
                                             coordinator_options options);

} // namespace ringmaster
