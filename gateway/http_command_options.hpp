#pragma once

#include "gateway/http/http_options.hpp"
#include "tools/options/option_table.hpp"

namespace ringmaster::gateway {

/// Options of `ringmaster-gateway` for HTTP. `where` is the text of --http; empty: it was not given.
void add_http_options(option_table& table, std::string& where, http_options& target);

/// Reads `where` into the target. Errors: invalid_argument, also for options that make sense with --http only.
caf::error check_http_options(const std::string& where, http_options& target);

} // namespace ringmaster::gateway
