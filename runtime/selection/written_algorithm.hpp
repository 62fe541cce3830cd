#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/schedule_json.hpp"

namespace ringmaster {

// Schedules from a file, used as an algorithm: for their collective, and for multiples of its elements. A schedule
// moves ranges, and the meaning of a kind does not depend on the number of elements at an offset; so a proof stays true
// if all offsets and counts are multiplied by the same number.

/// The multiple of the written collective that is requested; 1 if neither has elements. The request must have passed
/// `check_request`. Errors: invalid_argument for another world size, root or peer, for counts that are no multiple, and
/// for more scratch than can be counted.
caf::expected<uint64_t> multiple_of(const schedule_set& written, const plan_request& request);

/// The collective with `factor` times the elements. Errors: those of `check_request` and `multiple_of`.
caf::expected<schedule_set> scaled(schedule_set written, uint64_t factor);

/// The cost of proved schedules, from their proof and from simulations. Errors: those of `simulate`.
caf::expected<algorithm_cost> cost_of(const schedule_set& written);

/// Registers proved schedules as an algorithm of this process. There can be one set, since an algorithm's functions get
/// only the request. Errors: invalid_argument for a second set; those of `register_algorithm` and `cost_of`.
caf::error register_schedules(const std::string& name, schedule_set written);

} // namespace ringmaster
