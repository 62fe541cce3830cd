#pragma once

#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// The address of this host from which `there` is reached, in numbers: by it others on that side reach this host, which
/// its name may not (Debian's /etc/hosts says 127.0.1.1). Sends nothing. Errors: invalid_argument, for a name that
/// nobody knows; io_error, where there is no route.
caf::expected<std::string> own_address_towards(const endpoint& there);

/// "localhost", and numeric addresses by which only this host is reached: 127.0.0.0/8, ::1, also mapped into IPv6.
bool is_loopback(const std::string& host);

/// "0.0.0.0" and "::", in any spelling: a process that listens there is reached at all addresses of its host.
bool is_any_address(const std::string& host);

/// Whether this is a numeric address that this host has. Looks up no name.
bool is_own_address(const std::string& host);

/// Where processes of this host reach each other: 127.0.0.1, or ::1 on a host without IPv4.
std::string loopback_address();

/// To listen at all addresses of this host: "::", which takes IPv4 as well, or "0.0.0.0" on a host without IPv6.
std::string any_address();

/// The address that an option names to listen at: "localhost" is the loopback address, "[::1]" is "::1".
std::string listening_address(const std::string& host);

/// Of this host, numeric, that are up and not for itself alone.
std::vector<std::string> addresses_of_host();

/// What this host has in place of an address that is not its own, for people: "it has 10.0.0.7, and 0.0.0.0 stands for
/// all".
std::string own_addresses_text();

} // namespace ringmaster
