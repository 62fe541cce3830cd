#pragma once

#include "runtime/training/strategies.hpp"

namespace ringmaster::training {

/// What a pipeline's schedule has a rank do next with one micro-batch, counted from 0.
struct pipeline_step {
  enum class kind : uint8_t { forward, backward, backward_input, backward_weight };

  kind what = kind::forward;
  uint32_t micro_batch = 0;
  uint32_t chunk = 0; ///< Of the rank's parts of the model, as they come in it.
};

/// 1F1B's order: `ahead` forwards, then a forward and a backward by turns, then the backwards that are left.
std::vector<pipeline_step> one_forward_one_backward_order(uint32_t ahead, uint32_t micro_batches);

/// A rank of a pipeline, for all of the global batch in the given micro-batches, in the schedule's order. The model is cut into
/// stages of contiguous layers, as many as ranks times chunks; rank r has stages r, r + p, r + 2p, ... Activations go to
/// the next stage, their gradients to the previous one; every layer is updated in the end.
strategy run_pipeline(rank& self, const model& m, std::vector<range> micro_batches, std::vector<pipeline_step> order,
                      uint32_t chunks = 1);

} // namespace ringmaster::training
