#pragma once

#include "gateway/http/server/http_server.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::gateway {

/// How the gateway serves HTTP, as the command line says it.
struct http_options {
  endpoint where;                 ///< Port 0: any free port.
  std::string coordinator;        ///< HOST:PORT, for people.
  std::string certificate, key;   ///< PEM files; both or none.
  std::string clients;            ///< A PEM file: the authority of the certificates that clients must have.
  std::string operator_token;     ///< A file. Empty: nothing can be changed.
  std::string reader_token;       ///< A file.
  bool open_reading = false;      ///< Reading needs no token, and is not for this user's processes only.
  std::vector<std::string> names; ///< Names of this server in Host headers, besides its addresses and localhost.
  size_t event_streams_max = 32;
  size_t requests_max = 64; ///< Connections besides event streams.
  connection_limits limits;
  std::chrono::milliseconds interval{250};
  std::chrono::milliseconds idle_interval{1000}; ///< The same while no reader of events is connected.

  /// The server's options, after all files were read. Errors: invalid_argument; io_error for a file. A listening
  /// address that other hosts reach needs a reader's or an operator's token unless reading is open, and TLS if there is
  /// a token, which would otherwise be sent in clear.
  caf::expected<server_options> server() const;
};

} // namespace ringmaster::gateway
