#pragma once

#include "gateway/dialects/dialect.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/expected.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::gateway {

/// Where the gateway listens, and the dialect that clients speak there.
struct listener_options {
  std::string name = "lab";
  endpoint address;              ///< Of the coordinator's services.
  std::vector<endpoint> devices; ///< Each is the address of one device; empty: devices have none.
  dialect form;
};

/// "host:port" to listen at; port 0 is any free port. Errors: invalid_argument.
caf::expected<endpoint> parse_listening_address(std::string_view text);

/// The listeners of a configuration file: a section for each, with `key = value` lines and comments after ";" or "#".
/// Errors: invalid_argument, with the line.
caf::expected<std::vector<listener_options>> parse_listeners(std::string_view text);

/// The listeners of `--grpc`: of a file, or one of the lab's form at "host:port". Errors: io_error and corrupt for a
/// file, invalid_argument for an address.
caf::expected<std::vector<listener_options>> listeners_of(const std::string& file_or_address);

} // namespace ringmaster::gateway
