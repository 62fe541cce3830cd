#pragma once

#include "runtime/health/restart_intensity.hpp"
#include "runtime/trust/credentials.hpp"

#include <caf/node_id.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace ringmaster {

/// A message from another process that its role does not allow, and that no actor has seen.
struct refused_message {
  connected_peer from;
  std::string why;         ///< For people: "an observer may not drain nodes: that needs the role operator".
  uint64_t unreported = 0; ///< Others since the last report.
};

/// The processes that are connected to this one, by their ids in CAF's protocol. Thread-safe.
class peer_directory {
public:
  /// How many that have left are still known: their last messages may wait in an actor's mailbox.
  static constexpr size_t left_max = 1024;

  void connected(const caf::node_id& process, connected_peer who);
  void disconnected(const caf::node_id& process);
  /// None: it has had no connection to this process, or none for long.
  std::optional<connected_peer> find(const caf::node_id& process) const;

  /// A message was refused: it is counted, and logged and reported once a second at most.
  void refused(const connected_peer& from, std::string why);
  /// Has `then` called at each report, on any thread. Empty: no more.
  void when_refused(std::function<void(const refused_message&)> then);

private:
  mutable std::mutex mutex_;
  std::map<caf::node_id, std::pair<connected_peer, size_t>> peers_; ///< With the number of connections.
  std::deque<caf::node_id> left_;                                   ///< The oldest first; some may be back.
  std::function<void(const refused_message&)> report_;
  rate_limiter rate_limiter_{std::chrono::seconds{1}};
};

} // namespace ringmaster
