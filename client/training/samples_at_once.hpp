#pragma once

#include "client/training/training_run.hpp"

namespace ringmaster::training {

/// For layers that cannot learn of a single sample, as batch norm: whether each rank works on as many at once as they
/// want. Errors: invalid_argument, with the nearest options that would do.
caf::error check_samples_at_once(const run_settings& x);

} // namespace ringmaster::training
