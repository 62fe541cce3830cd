#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include <sys/types.h>

namespace ringmaster::gateway {

/// A TCP connection within this host, as its initiator's end has it. Numeric addresses of one family.
struct local_connection {
  std::string from;
  uint16_t from_port = 0;
  std::string to;
  uint16_t to_port = 0;
};

/// The user of the process that has opened the connection, from the kernel (sock_diag(7)). Errors: unreachable, if there
/// is no such connection; io_error, if the kernel does not say; invalid_argument for an address that is not numeric.
caf::expected<uid_t> user_of(const local_connection& x);

using user_finder = std::function<caf::expected<uid_t>(const local_connection&)>;

/// Whether a process of this process's user, or of root, has opened the connection. Errors: permission_denied, if not or
/// if it is not known.
caf::error check_own_user(const local_connection& x, const user_finder& find = user_of);

} // namespace ringmaster::gateway
