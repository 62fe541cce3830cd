#pragma once

#include "messages/interfaces.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <memory>
#include <string>

namespace ringmaster::gateway {

/// Serves a cluster over HTTP.
class http_gateway {
public:
  /// Starts to listen; port 0 is any free port. Errors: io_error where it cannot listen.
  static caf::expected<std::unique_ptr<http_gateway>> start(caf::actor_system& system, coordinator_actor coordinator,
                                                            const endpoint& where);
  /// Stops to listen, and closes all connections.
  ~http_gateway();
  http_gateway(const http_gateway&) = delete;
  http_gateway& operator=(const http_gateway&) = delete;

  /// For the log: "HTTP at http://127.0.0.1:8080".
  std::string summary() const;

private:
  http_gateway() = default;
};

} // namespace ringmaster::gateway
