#pragma once

#include "messages/ids.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The address at which a process listens.
struct endpoint {
  std::string host;
  uint16_t port = 0;

  friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// "host:port", an IPv6 address in brackets: "[::1]:7077". Errors: invalid_argument.
caf::expected<endpoint> parse_endpoint(std::string_view text);
/// One or more of these, with commas between them. Errors: invalid_argument.
caf::expected<std::vector<endpoint>> parse_endpoints(std::string_view text);
/// In the form that parse_endpoint reads.
std::string text_of(const endpoint& x);
/// For a text that `parse_endpoint` refuses because an IPv6 address lacks its brackets: "an IPv6 address is written in
/// brackets: \"[::1]:7077\"". Empty if something else is wrong.
std::string bracket_advice(std::string_view text);
/// A numeric address without brackets, with or without a zone: "fe80::1%eth0".
bool is_ipv6_address(std::string_view host);
/// "[::1]" is "::1"; other hosts stay as they are.
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
