#pragma once

#include "messages/ids.hpp"
#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"
#include "runtime/text/trace_events.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// The processes and tracks of a trace: a node is a process, and each stream of its devices a track; a device whose
/// node is unknown is a process of its own. Also the best known offset of each node's clock from the coordinator's.
class trace_places {
public:
  static constexpr uint64_t coordinator_pid = 1;
  static constexpr trace_events::track events{coordinator_pid, 1};     ///< What happens to the cluster.
  static constexpr trace_events::track operations{coordinator_pid, 2}; ///< When the coordinator starts operations.

  /// Reads nodes, their devices and clocks.
  void learn(const proto::Record& record);
  /// Adds tracks for the device's default stream and this one. Called for all streams before pid() and tid().
  void use(device_id device, stream_id stream);

  uint64_t pid(device_id device) const;
  uint64_t tid(device_id device, stream_id stream) const;
  /// Converts a time of the device's node to the coordinator's clock.
  uint64_t time_of(device_id device, uint64_t ns) const;
  bool has_node(device_id device) const { return node_of(device) != node_id{}; }
  /// Whether any device's node is known.
  bool have_nodes() const;

  struct name {
    uint64_t pid = 0;
    std::optional<uint64_t> tid; ///< None: the process's name.
    std::string text;
  };
  /// A process comes before its tracks.
  std::vector<name> names() const;

private:
  struct known_node {
    std::string place = {}; ///< "node-2 on hostb (pid 812)"
    std::optional<proto::NodeClock> clock = std::nullopt;
  };

  node_id node_of(device_id device) const; ///< 0: unknown.
  /// A process is a node, or a device whose node is unknown.
  using process_key = std::pair<node_id, device_id>;
  process_key process_of(device_id device) const;
  std::string text_of(const known_node& x) const;

  std::map<node_id, known_node> nodes_;
  std::map<device_id, node_id> nodes_of_devices_;
  std::map<device_id, std::set<stream_id>> streams_;     ///< Of each device with tracks; 0 is the default stream.
  std::map<process_key, std::set<device_id>> processes_; ///< The devices of each.
};

/// A rank's part of an operation whose end it never reported: it hangs, or its device is lost.
struct unfinished_rank {
  enum class fate : uint8_t {
    hung, ///< Its device was ended on suspicion.
    died,
    left,   ///< Its node was shut down.
    running ///< It has not ended when the records end.
  };

  operation_key operation;
  epoch_number epoch;
  uint32_t rank = 0;
  device_id device;
  fate how = fate::running;
  std::string cause;
  uint64_t started_ns = 0; ///< When the attempt started, or when the device ended its previous work.
  uint64_t ended_ns = 0;   ///< When the device was lost; for a running one the time of the last record.
};

/// "hung", "died", "left", "running".
std::string to_string(unfinished_rank::fate x);

/// For each device that was lost with operations in flight, and for each that has some when the records end: the
/// operation that it was executing. Records are in the order in which they were written.
std::vector<unfinished_rank> unfinished_ranks(std::span<const proto::Record> records);

} // namespace ringmaster
