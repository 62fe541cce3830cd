#pragma once

#include "runtime/training/strategies.hpp"

namespace ringmaster::training {

/// What a pipeline's schedule has a stage do next: the forward or the backward of one micro-batch, counted from 0.
struct pipeline_step {
  bool forward = true;
  uint32_t micro_batch = 0;
};

/// A stage of a pipeline: the rank's contiguous layers, for all of the global batch in the given micro-batches, in the
/// schedule's order. Activations go to the next rank, their gradients to the previous one; every layer is updated in the end.
strategy run_stage(rank& self, const model& m, std::vector<range> micro_batches, std::vector<pipeline_step> order);

} // namespace ringmaster::training
