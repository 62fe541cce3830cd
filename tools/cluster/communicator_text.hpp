#pragma once

#include "tools/cluster/status_text.hpp"

namespace ringmaster {

/// Lines about one communicator of the cluster: what is in flight, who is waited for, and a table of its ranks.
void tell_communicator(const proto::CommunicatorStatus& x, const proto::ClusterInfo& cluster,
                       std::vector<status_line>& out);

/// "4.2 s", "12 min 5 s", "3 h 4 min", "2 d 5 h"
std::string age_text(uint64_t ns);

} // namespace ringmaster
