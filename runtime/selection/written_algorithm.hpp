#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/schedule_json.hpp"

namespace ringmaster {

// Schedules that somebody wrote, used as an algorithm: for the collective they are for, and for the same one of a whole
// multiple of the elements. A schedule moves ranges, and no kind's meaning depends on how many elements are behind an
// offset; so with every offset and count multiplied by one number, what is proved of one is true of the other.

/// Which multiple of the written collective the request is; 1 where neither has elements. The request has passed
/// `check_request`. Errors: invalid_argument for another world size, root or peer, for counts that are no multiple, and
/// for more scratch than can be counted.
caf::expected<uint64_t> multiple_of(const schedule_set& written, const plan_request& request);

/// The collective with `factor` times the elements. Errors: as of `check_request` and `multiple_of`.
caf::expected<schedule_set> scaled(schedule_set written, uint64_t factor);

/// What the schedules take: from a proof that has found no fault, and simulations. Errors: those of `simulate`.
caf::expected<algorithm_cost> cost_of(const schedule_set& written);

/// Makes the schedules an algorithm of this process, which must have been proved. One set a process, since an
/// algorithm's functions know nothing but the request. Errors: invalid_argument as of `register_algorithm`, also for a
/// second set; those of `cost_of`.
caf::error register_schedules(const std::string& name, schedule_set written);

} // namespace ringmaster
