#pragma once

#include "tools/processes/child_process.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster::soak {

/// Hosts with a network between them that can be cut, made of Linux network namespaces: a bridge in a namespace of this
/// process, and a namespace with one cable to it for each host. All of it ends with this process, however that ends.
class soak_network {
public:
  /// Moves the calling thread, and those that it starts from now on, into a network namespace of their own: to be
  /// called before there are others. Errors: io_error, where the system does not allow it (it takes root), with the
  /// command that failed.
  static caf::expected<soak_network> make(size_t hosts);

  size_t hosts() const { return holders_.size(); }
  /// Of this process, as hosts reach it.
  static std::string own_address() { return "10.83.0.1"; }
  static std::string address_of(size_t host);
  /// What a command begins with that is to run on this host.
  std::vector<std::string> on_host(size_t host) const;

  /// Pulls the host's cable at the bridge's end, or plugs it in again. Connections are not told.
  static void set_cable(size_t host, bool plugged_in);

private:
  soak_network() = default;

  std::vector<launch::child_process> holders_; ///< Of the namespaces, by host.
};

} // namespace ringmaster::soak
