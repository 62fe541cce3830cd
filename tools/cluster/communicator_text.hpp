#pragma once

#include "tools/cluster/status_text.hpp"

namespace ringmaster {

/// Lines about a communicator: its operations in flight, the ranks that others wait for, and a table of its ranks. A
/// narrow page leaves out the columns queued, late, device, received and where, in this order.
void add_communicator(const proto::CommunicatorStatus& x, const proto::ClusterInfo& cluster, const page_format& page,
                      std::vector<status_line>& out);

/// "4.2 s", "12 min 5 s", "3 h 4 min", "2 d 5 h"
std::string age_text(uint64_t ns);

} // namespace ringmaster
