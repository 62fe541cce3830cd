#pragma once

#include "planner/estimates/training_setting.hpp"
#include "planner/systems/gpu_system.hpp"

namespace ringmaster::training {

/// Seconds of collectives of a layer, in one direction.
struct exchange_parts {
  double tensor = 0;  ///< Sums of tensor-parallel ranks, or what sequence parallelism does for them.
  double context = 0; ///< Keys and values, around the context ranks.
  double experts = 0; ///< Dispatch and combine.

  double sum() const { return tensor + context + experts; }
};

/// A transformer layer and a micro-batch, on each of the ranks that share it. Seconds.
struct layer_times {
  double forward = 0;                       ///< With its collectives; host and device together.
  double backward = 0;                      ///< With its collectives and recomputation.
  double by_weight = 0;                     ///< The part of backward for weight gradients.
  exchange_parts exposed{};                 ///< Collectives of each direction that nothing hides.
  exchange_parts hidden{};                  ///< Collectives of each direction that other work hides.
  double core = 0, core_backward = 0;       ///< Of forward and backward, attention's scores.
  double split = 0, split_backward = 0;     ///< Of these, the cost of keys in blocks.
  double network = 0, network_backward = 0; ///< The part of forward and backward after attention, without collectives.
  double network_by_weight = 0;             ///< The same of by_weight.
};

layer_times layer_times_of(const language_model& m, const gpu_system& on, const training_setting& how, layer_kind kind);

/// Seconds of a micro-batch's embedding on the first stage, and of its logits and loss on the last one, forward and
/// backward.
struct end_times {
  double embedding = 0;
  double loss = 0;

  double embedding_forward() const { return embedding / 3; }
  double embedding_backward() const { return embedding - embedding_forward(); }
};
end_times end_times_of(const language_model& m, const gpu_system& on, const training_setting& how);

/// The vocabulary, padded so that each rank's part is a multiple of 128.
double padded_vocabulary(const language_model& m, uint32_t tensor);

} // namespace ringmaster::training
