#pragma once

#include "messages/cluster.pb.h"
#include "tools/bench/bench_options.hpp"

#include <caf/expected.hpp>

namespace ringmaster {

/// The options on a cluster of other processes: the number of free devices that --devices gives, else all of them; and
/// sizes up to what their memory takes, unless --max-bytes gives one. At least the number that `told` wants must be
/// free. Errors: invalid_argument, out_of_memory, with the numbers and what to do.
caf::expected<bench_options> fit_to_cluster(bench_arguments& told, const proto::ClusterInfo& cluster);

/// The same of sizes alone, where each device has so much memory. Errors: out_of_memory.
caf::error fit_sizes(bench_options& x, uint64_t memory_bytes);

} // namespace ringmaster
