#pragma once

#include "gateway/http/server/http_server.hpp"
#include "gateway/http/state/cluster_feed.hpp"
#include "gateway/http/state/cluster_source.hpp"

#include <atomic>
#include <string>

namespace ringmaster::gateway {

/// The addresses that only read: /metrics, /healthz, /readyz and GET requests below /api/v1. What they use must outlive
/// the server.
class read_routes {
public:
  read_routes(cluster_source& source, cluster_feed& feed, event_hub& hub, std::string coordinator, bool has_operators);

  void add_to(http_server& server);

private:
  void add_health(http_server& server);
  void add_documents(http_server& server);
  void add_journal(http_server& server);
  void add_trace(http_server& server);
  void add_events(http_server& server);
  std::string metrics(const http_server& server) const;
  json info(const http_server& server) const;

  cluster_source& source_;
  cluster_feed& feed_;
  event_hub& hub_;
  const std::string coordinator_;
  const bool has_operators_;
  const double started_ms_;
  std::atomic<bool> makes_trace_ = false;
};

} // namespace ringmaster::gateway
