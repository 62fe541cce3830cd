#pragma once

#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// The name of this host; "localhost" if the system does not say.
std::string own_host_name();

/// The numeric address of this host on the route to `there`, at which hosts on that side reach it. (The host's name may
/// not lead there: Debian's /etc/hosts says 127.0.1.1.) Sends nothing. Errors: invalid_argument for an unknown name,
/// io_error if there is no route.
caf::expected<std::string> own_address_towards(const endpoint& there);

/// "localhost" and numeric loopback addresses: 127.0.0.0/8, ::1, also IPv4 addresses mapped into IPv6.
bool is_loopback(const std::string& host);

/// "0.0.0.0" and "::", in any spelling: a process that listens there is reachable at all addresses of its host.
bool is_any_address(const std::string& host);

/// Whether this is a numeric address that this host has. Looks up no name.
bool is_own_address(const std::string& host);

/// At which processes of this host reach each other: 127.0.0.1, or ::1 on a host without IPv4.
std::string loopback_address();

/// To listen at all addresses of this host: "::", which includes IPv4, or "0.0.0.0" on a host without IPv6.
std::string any_address();

/// The address for an option's value: "localhost" is the loopback address, "[::1]" is "::1".
std::string listening_address(const std::string& host);

/// The numeric addresses of this host's interfaces that are up, without loopback and link-local ones.
std::vector<std::string> addresses_of_host();

/// For an error message about an address that this host does not have: "it has 10.0.0.7, and 0.0.0.0 stands for all".
std::string own_addresses_text();

} // namespace ringmaster
