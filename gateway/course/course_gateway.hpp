#pragma once

#include "messages/interfaces.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <memory>
#include <string>
#include <vector>

namespace ringmaster::gateway {

/// The course protocol over gRPC: one server for each listener of a configuration file.
class course_gateway {
public:
  /// Starts to listen. `where`: "host:port" for the lab's own form of the protocol, or a file with listeners. Errors:
  /// io_error for a file that cannot be read and an address that cannot be listened at; corrupt for a mistake in the
  /// file, with its line.
  static caf::expected<std::unique_ptr<course_gateway>> start(caf::actor_system& system, coordinator_actor coordinator,
                                                              const std::string& where);
  /// Stops to listen; calls under way are answered with UNAVAILABLE.
  ~course_gateway();
  course_gateway(const course_gateway&) = delete;
  course_gateway& operator=(const course_gateway&) = delete;

  /// A line for each address, for the log: "gRPC at 127.0.0.1:50051, dialect lab".
  std::vector<std::string> summary() const;

private:
  course_gateway() = default;
};

} // namespace ringmaster::gateway
