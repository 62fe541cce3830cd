#pragma once

#include "client/training/training_run.hpp"

namespace ringmaster::training {

/// For layers that cannot learn from a single sample, such as batch norm: whether each micro-batch has enough samples.
/// Errors: invalid_argument, with the nearest options that would do.
caf::error check_samples_at_once(const run_settings& x);

} // namespace ringmaster::training
