#pragma once

#include "gateway/http/state/topology.hpp"
#include "messages/status.pb.h"

#include <deque>
#include <map>
#include <string>

namespace ringmaster::gateway {

/// What is known of a cluster besides its status.
struct cluster_facts {
  std::string coordinator;  ///< HOST:PORT, or empty.
  std::string error;        ///< Why the coordinator did not answer; the status is then an older one.
  uint64_t first_index = 1; ///< Of the journal's records.
  uint64_t last_index = 0;
  uint64_t folded = 0; ///< The newest record that was read.
  uint64_t unsynced = 0;
  bool has_journal = true;
};

/// What waits in a cluster, summed over its communicators.
struct queue_lengths {
  uint64_t stream_commands = 0; ///< As of the ranks' latest answers.
  uint64_t operations_in_flight = 0;
  uint64_t open_calls = 0; ///< Of ranks.
  uint64_t waiting_calls = 0;
  uint64_t waiting_for_group_end = 0;

  static queue_lengths of(const proto::ClusterStatus& x);
};

/// Writes a status as the fields of `Status` in openapi.json, without its version. Ages become times, so a status in
/// which nothing happens does not change. Knows the operations and bytes of the latest seconds. One thread at a time.
class status_writer {
public:
  json write(const proto::ClusterStatus& x, const cluster_facts& facts);

  /// Bytes that ranks received by each route since this object exists, including those of communicators that have
  /// ended.
  const std::map<std::string, uint64_t>& route_bytes() const { return route_bytes_; }

private:
  struct operation_graph {
    proto::CollectiveKind kind{};
    std::string algorithm;
    uint32_t ranks = 0;
  };
  struct moment {
    uint64_t time_ns = 0;
    uint64_t operations = 0;
  };

  json communicator_json(const proto::CommunicatorStatus& x, uint64_t time_ns);
  const json& topology_of(const proto::CommunicatorStatus& x);
  json rates_json(const proto::ClusterStatus& x);
  /// Counts what has been done since the status before.
  void count(const proto::ClusterStatus& x);

  topology_cache topologies_;
  std::map<uint64_t, operation_graph> latest_graphs_;             ///< By communicator.
  std::map<std::pair<uint64_t, std::string>, uint64_t> received_; ///< By communicator and route, as last reported.
  std::map<uint64_t, uint64_t> done_;                             ///< By communicator, as last reported.
  std::map<std::string, uint64_t> route_bytes_;
  uint64_t operations_ = 0;
  std::deque<moment> moments_; ///< Of the latest seconds.
  json latest_;                ///< What was written last.
};

} // namespace ringmaster::gateway
