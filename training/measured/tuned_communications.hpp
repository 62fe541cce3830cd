#pragma once

#include "runtime/selection/process_costs.hpp"
#include "training/measured/profiled_costs.hpp"

namespace ringmaster::training {

/// What the communications of a job take whose ranks are all in one process, by the constants that `ringmaster tune`
/// measures: a call that the ranks wait for, and the joint operation that moves their data. The job outlives it.
communication_times tuned_communications(const training_job& job, const process_constants& machine);

} // namespace ringmaster::training
