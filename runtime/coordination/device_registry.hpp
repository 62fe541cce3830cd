#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"
#include "messages/transfer.hpp"
#include "messages/wire_ids.hpp"
#include "runtime/coordination/id_ledger.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

using device_ids = std::vector<device_id>; ///< In rank order, if they are ranks.

inline uint64_t memory_bytes(const gpu_sim::DeviceMetadata& x) {
  return x.maxmemaddr().value() - x.minmemaddr().value();
}
/// Whether the range lies within the device's memory.
bool within(const gpu_sim::DeviceMetadata& device, uint64_t address, uint64_t bytes);

struct known_device {
  gpu_sim::DeviceMetadata metadata;
  device_handle handle; ///< For sending; not looked into.
  node_id node;
  std::set<communicator_id> communicators; ///< None: free.
};

struct known_node {
  proto::NodeJoinRequest about;
  caf::strong_actor_ptr handle;
  uint64_t joined_ns = 0;                        ///< Wall clock.
  bool draining = false;                         ///< It is drained: no communicator gets its devices.
  std::map<std::string, std::string> apart = {}; ///< By name, nodes that it has no direct connection to, and why.
};

/// The cluster's members: nodes, their devices, and which communicators these are in.
class device_registry {
public:
  device_registry() : device_registry(std::make_shared<id_ledger>()) {}
  explicit device_registry(std::shared_ptr<id_ledger> ids) : ids_(std::move(ids)) {}

  // -- nodes --

  /// Gives it an id. Errors: in_use, if a node of that name has joined; the error says where it is.
  caf::expected<node_id> node_joined(proto::NodeJoinRequest about, caf::strong_actor_ptr handle,
                                     uint64_t joined_ns = 0);
  /// It is back after the coordinator was restarted, with its id of before.
  void node_rejoined(node_id id, proto::NodeJoinRequest about, caf::strong_actor_ptr handle, uint64_t joined_ns);
  std::optional<known_node> node_gone(node_id id);
  /// The node has no direct connection to another one, for this reason; without an error it has one again.
  void node_apart(node_id id, const std::string& peer, const caf::error& why);
  /// The two, if each has reported that it has no direct connection to the other; else none.
  std::vector<known_node> apart_from_each_other(node_id one, const std::string& other) const;
  const std::map<node_id, known_node>& nodes() const { return nodes_; }
  void set_draining(node_id id, bool draining);
  /// Empty for an unknown node.
  std::string name_of(node_id id) const;
  /// "node-2 on hostb, pid 812"; empty for an unknown node.
  std::string place_of(node_id id) const;

  /// Communicators with devices on both.
  std::set<communicator_id> shared_by(node_id one, const std::string& other) const;

  // -- devices --

  void joined(known_device device);
  /// From now on texts name every device with its node; until then only devices whose metadata has a place.
  void tell_places();
  /// The cause is kept for `known`. None: it was not in the cluster.
  std::optional<known_device> gone(device_id id, const std::string& cause);
  const std::map<device_id, known_device>& devices() const { return devices_; }
  /// Null: it is not in the cluster.
  const known_device* find(device_id id) const;
  /// Its name for people, also after it has left: "device 0x4, node-2 on hostb, pid 812".
  std::string text_of(device_id id) const;
  /// Errors: unknown_device, with the cause if it has left.
  caf::expected<const known_device*> known(device_id id) const;

  // -- which are free --

  void take(device_id id, communicator_id communicator);
  void leave(device_id id, communicator_id communicator);
  /// All devices leave it; returns them.
  device_ids leave(communicator_id communicator);
  device_ids members_of(communicator_id communicator) const;
  /// In no communicator, and not of a drained node.
  bool is_free(const known_device& x) const { return x.communicators.empty() && !is_draining(x); }
  size_t free_count() const;
  /// Free devices, grouped by host and then by node, so that what is sent to the next rank rarely leaves the host; in
  /// the order in which they joined. Errors: too_few_devices, with the numbers; `who` is the caller in its text.
  caf::expected<device_ids> free_devices(size_t wanted, const std::string& who) const;
  /// Whether communicators of these ranks can be made. Errors: unknown_device; in_use for a device whose node is
  /// drained; invalid_argument for a device that is twice in a group.
  caf::error check(const std::vector<device_ids>& groups) const;
  /// Whether each of these devices is in no communicator. Errors: unknown_device; in_use, naming a communicator.
  caf::error check_free(const device_ids& which) const;

private:
  bool is_draining(const known_device& x) const;
  const known_node* find_node(const std::string& name) const;

  std::map<node_id, known_node> nodes_;
  std::map<device_id, known_device> devices_;
  std::map<device_id, std::string> gone_; ///< Why devices left, the latest of them.
  std::shared_ptr<id_ledger> ids_;
  bool tells_places_ = false;
};

} // namespace ringmaster
