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
/// What `parse_endpoint` would take in place of a text that it refuses, where an IPv6 address stands without brackets:
/// "an IPv6 address stands in brackets: \"[::1]:7077\"". Empty where something else is wrong.
std::string bracket_advice(std::string_view text);
/// Numeric, without brackets, also of one link: "fe80::1%eth0".
bool is_ipv6_address(std::string_view host);
/// A host as options have it: "[::1]" is "::1".
std::string without_brackets(std::string_view host);

/// A device that the coordinator's configuration names, and the node that hosts it.
struct cluster_device {
  device_id id;
  endpoint node;

  friend bool operator==(const cluster_device&, const cluster_device&) = default;
};

/// "id,host,port", as in "3,10.0.0.7,7080" and "4,::1,7080". Errors: invalid_argument.
caf::expected<cluster_device> parse_cluster_device(std::string_view text);

} // namespace ringmaster
