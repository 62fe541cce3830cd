#pragma once

#include "gateway/http/http_options.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <memory>
#include <string>

namespace ringmaster::gateway {

class cluster_source;

/// Serves a cluster over HTTP: metrics, the JSON interface, server-sent events and the page. It has threads of its own:
/// one follows the cluster, one accepts, and one serves each connection.
class http_gateway {
public:
  /// Starts to follow the cluster and to listen. Errors: those of `http_options::server`; io_error where it cannot
  /// listen.
  static caf::expected<std::unique_ptr<http_gateway>> start(caf::actor_system& system, coordinator_actor coordinator,
                                                            const http_options& options);
  /// The same of any source.
  static caf::expected<std::unique_ptr<http_gateway>> start(std::unique_ptr<cluster_source> source,
                                                            const http_options& options);
  /// Stops to listen, and closes all connections.
  ~http_gateway();
  http_gateway(const http_gateway&) = delete;
  http_gateway& operator=(const http_gateway&) = delete;

  /// "http://127.0.0.1:8080"
  std::string url() const;
  /// For the log: "HTTP at http://127.0.0.1:8080/".
  std::string summary() const;

private:
  struct parts;

  explicit http_gateway(std::unique_ptr<parts> all);

  std::unique_ptr<parts> parts_;
};

} // namespace ringmaster::gateway
