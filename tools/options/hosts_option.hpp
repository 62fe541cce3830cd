#pragma once

#include "tools/options/option_table.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// --hosts. `says`: its purpose.
option& add_hosts_option(option_table& table, std::vector<uint64_t>& hosts, const std::string& says);
/// By rank, as in `plan_request`; empty if all are on one host. Errors: invalid_argument if the ranks do not fill the
/// hosts.
caf::expected<std::vector<uint32_t>> hosts_of_ranks(const std::vector<uint64_t>& hosts, uint32_t ranks);

} // namespace ringmaster
