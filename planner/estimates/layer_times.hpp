#pragma once

#include "planner/estimates/parallel_setting.hpp"
#include "planner/systems/gpu_system.hpp"

namespace ringmaster::training {

/// Seconds of collectives of a layer, in one direction.
struct exchange_parts {
  double tensor = 0;  ///< Sums of tensor-parallel ranks, or what sequence parallelism does for them.
  double context = 0; ///< Keys and values, round the context's ranks.
  double experts = 0; ///< Dispatch and combine.

  double sum() const { return tensor + context + experts; }
};

/// A transformer layer and a micro-batch, on each of the ranks that share it. Seconds.
struct layer_times {
  double forward = 0;                       ///< With its collectives; host and device together.
  double backward = 0;                      ///< With its collectives, and with what is computed again.
  double by_weight = 0;                     ///< The part of backward that is by the weights.
  exchange_parts exposed{};                 ///< Of each of both, in collectives, as far as nothing hides them.
  exchange_parts hidden{};                  ///< The same, behind other work.
  double core = 0, core_backward = 0;       ///< Of each of both, in attention's scores.
  double split = 0, split_backward = 0;     ///< Of these, what it costs that keys come in blocks.
  double network = 0, network_backward = 0; ///< Of what of both is no collective, the part that is behind attention.
  double network_by_weight = 0;             ///< The same of by_weight.
};

layer_times layer_times_of(const language_model& m, const gpu_system& on, const parallel_setting& how, layer_kind kind);

/// Of a micro-batch, the embedding on the first stage and the logits and the loss on the last one, forward and
/// backward.
struct end_times {
  double embedding = 0;
  double loss = 0;

  double embedding_forward() const { return embedding / 3; }
  double embedding_backward() const { return embedding - embedding_forward(); }
};
end_times end_times_of(const language_model& m, const gpu_system& on, const parallel_setting& how);

/// The vocabulary as it is shared: each rank's part a multiple of 128.
double padded_vocabulary(const language_model& m, uint32_t tensor);

} // namespace ringmaster::training
