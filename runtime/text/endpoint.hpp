#pragma once

#include "messages/ids.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

/// Where a process listens.
struct endpoint {
  std::string host;
  uint16_t port = 0;

  friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// "host:port", an IPv6 address in brackets: "[::1]:7077". Errors: invalid_argument.
caf::expected<endpoint> parse_endpoint(std::string_view text);
/// As parse_endpoint reads it.
std::string text_of(const endpoint& x);

/// A device that the coordinator's configuration names, and the node that hosts it.
struct cluster_device {
  device_id id;
  endpoint node;

  friend bool operator==(const cluster_device&, const cluster_device&) = default;
};

/// "id,host,port", as in "3,10.0.0.7,7080". Errors: invalid_argument.
caf::expected<cluster_device> parse_cluster_device(std::string_view text);

} // namespace ringmaster
