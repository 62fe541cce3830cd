#pragma once

#include "gateway/access/caller_guard.hpp"
#include "gateway/dialects/listener_file.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ringmaster::gateway {

/// PEM texts of a server with TLS. Without a certificate it has none.
struct grpc_certificates {
  std::string certificate = {}, key = {};
  std::string clients = {}; ///< The authority of the certificates that clients must have; empty: they need none.
};

/// The course protocol over gRPC: for each listener one address of the coordinator's services, and one for each of its
/// devices. Health and reflection are served, too.
class course_gateway {
public:
  /// Starts to listen; port 0 is any free port. Errors: io_error for an address that cannot be listened at;
  /// invalid_argument for one that other hosts reach, if nothing says which of them may call (caller_rules).
  static caf::expected<std::unique_ptr<course_gateway>> start(
    caf::actor_system& system, const coordinator_actor& coordinator, std::vector<listener_options> listeners,
    const grpc_certificates& certificates = {}, caller_rules callers = {});
  /// Stops to listen; calls under way are answered with UNAVAILABLE.
  ~course_gateway();
  course_gateway(const course_gateway&) = delete;
  course_gateway& operator=(const course_gateway&) = delete;

  /// The listeners with the ports that they have got.
  std::vector<listener_options> listeners() const;
  /// A line for each listener, for the log: "gRPC lab at 127.0.0.1:50051, devices at ...".
  std::vector<std::string> summary() const;

private:
  class listener;
  explicit course_gateway(caller_rules callers);

  const caller_rules callers_;
  std::vector<std::unique_ptr<listener>> listeners_;
};

} // namespace ringmaster::gateway
