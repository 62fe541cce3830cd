#pragma once

#include "planner/failures/failure_question.hpp"

#include <caf/expected.hpp>

namespace ringmaster::training {

/// A figure over several runs.
struct run_spread {
  double mean = 0, least = 0, most = 0;
};

/// The outcome of several simulated runs; parts as in `recovery_outcome`.
struct played_runs {
  run_spread effective, goodput, waiting, smaller;
  run_spread interruptions; ///< Of a run.
};

/// simulate_failures with the seeds 1 to `runs`, which is 1 at least. Errors: `check_playable`'s.
caf::expected<played_runs> play_runs(const failure_question& asked, recovery how, double interval_s, uint32_t runs,
                                     double life_shape = 1);

} // namespace ringmaster::training
