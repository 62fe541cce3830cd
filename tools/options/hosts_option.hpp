#pragma once

#include "tools/options/option_table.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// --hosts. `says`: what it is for.
option& add_hosts_option(option_table& table, std::vector<uint64_t>& hosts, const std::string& says);
/// By rank, as `plan_request` has them; empty where all are on one. Errors: invalid_argument, where the ranks do not
/// fill the hosts.
caf::expected<std::vector<uint32_t>> hosts_of_ranks(const std::vector<uint64_t>& hosts, uint32_t ranks);

} // namespace ringmaster
