#pragma once

#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <string>

namespace ringmaster {

/// The address of this host from which `there` is reached, in numbers: by it others on that side reach this host, which
/// its name may not (Debian's /etc/hosts says 127.0.1.1). Sends nothing. Errors: invalid_argument, for a name that
/// nobody knows; io_error, where there is no route.
caf::expected<std::string> own_address_towards(const endpoint& there);

/// "localhost", and numeric addresses by which only this host is reached.
bool is_loopback(const std::string& host);

} // namespace ringmaster
