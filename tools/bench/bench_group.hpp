#pragma once

#include "messages/cluster.pb.h"
#include "tools/bench/bench_options.hpp"

#include <caf/error.hpp>

#include <string>

namespace ringmaster {

/// Makes the options fit a cluster of other processes: as many of its free devices as --devices says, else as many as
/// there are up to that default; and sizes up to what their memory takes, unless --max-bytes says which. Errors:
/// too_few_devices, invalid_argument, out_of_memory, with the numbers and what to do.
caf::error fit_to_cluster(bench_options& x, const proto::ClusterInfo& cluster);

/// How the ranks lie: a line "# ranks 0-1, 4 on node-1, ..." for each node, ended by a line break.
std::string placement_text(const gpu_sim::CommInitResponse& group, const proto::ClusterInfo& cluster);

} // namespace ringmaster
