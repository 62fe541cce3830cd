#pragma once

#include "gateway/http/server/http_server.hpp"
#include "gateway/http/state/cluster_feed.hpp"
#include "gateway/http/state/cluster_source.hpp"

#include <atomic>

namespace ringmaster::gateway {

constexpr uint32_t drain_ms_max = 60'000;

/// The addresses that change something: faults of devices, and draining of nodes. What they use must outlive the
/// server.
class operator_routes {
public:
  operator_routes(cluster_source& source, cluster_feed& feed) : source_(source), feed_(feed) {}

  void add_to(http_server& server);

private:
  static constexpr int actions_max = 8; ///< At the same time.

  void inject(const httplib::Request& x, httplib::Response& to);
  void drain(const httplib::Request& x, httplib::Response& to);

  cluster_source& source_;
  cluster_feed& feed_;
  std::atomic<int> actions_ = 0;
};

} // namespace ringmaster::gateway
