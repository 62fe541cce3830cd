#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "runtime/text/trace_events.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ringmaster {

/// Where a trace shows what: a node is a process, and each stream of its devices a track; a device whose node is not
/// known is a process of its own. And how far a node's clock is before the coordinator's, by the best estimate there
/// is.
class trace_places {
public:
  static constexpr uint64_t coordinator_pid = 1;
  static constexpr trace_events::track events{coordinator_pid, 1};     ///< What happens to the cluster.
  static constexpr trace_events::track operations{coordinator_pid, 2}; ///< When the coordinator starts operations.

  /// Nodes, their devices and clocks.
  void learn(const proto::Record& record);
  /// The device's default stream, and this one, have tracks. All are to be used before numbers are asked for.
  void use(device_id device, stream_id stream);

  uint64_t pid(device_id device) const;
  uint64_t tid(device_id device, stream_id stream) const;
  /// The coordinator's time of what the device's node noted at `ns`.
  uint64_t time_of(device_id device, uint64_t ns) const;
  bool has_node(device_id device) const { return node_of(device) != node_id{}; }
  /// Whether any of the devices used has a node.
  bool have_nodes() const;

  struct name {
    uint64_t pid = 0;
    std::optional<uint64_t> tid; ///< None: of the process.
    std::string text;
  };
  /// Those of processes come before those of their tracks.
  std::vector<name> names() const;

private:
  struct known_node {
    std::string place = {}; ///< "node-2 on hostb (pid 812)"
    std::optional<proto::NodeClock> clock = std::nullopt;
  };

  node_id node_of(device_id device) const; ///< 0: not known
  /// What is one process: its node, or where that is not known, the device.
  using process_key = std::pair<node_id, device_id>;
  process_key process_of(device_id device) const;
  std::string text_of(const known_node& x) const;

  std::map<node_id, known_node> nodes_;
  std::map<device_id, node_id> nodes_of_devices_;
  std::map<device_id, std::set<stream_id>> streams_;     ///< Of the devices that are used; 0 is the default one.
  std::map<process_key, std::set<device_id>> processes_; ///< Their devices.
};

} // namespace ringmaster
