#pragma once

#include "planner/estimates/layer_times.hpp"
#include "planner/estimates/memory_estimate.hpp"
#include "planner/estimates/stage_layers.hpp"

namespace ringmaster::training {

/// Seconds of a rank in collectives and hops, of an iteration.
struct communication_parts {
  exchange_parts layers{};
  double hops = 0;      ///< Between stages.
  double gradients = 0; ///< Of gradients, and of weights that shards of states or weights make.

  double sum() const { return layers.sum() + hops + gradients; }
};

struct iteration_estimate {
  double seconds = 0;
  double bubble = 0;             ///< Seconds of the pipeline's filling and draining.
  double imbalance = 0;          ///< Seconds that the slowest stage works longer than the mean: so long others wait.
  double update = 0;             ///< Seconds of the optimizer.
  double offload = 0;            ///< Seconds of the host link that no work hides.
  communication_parts exposed{}; ///< As far as nothing hides them.
  communication_parts hidden{};  ///< Behind other work.
  double memory_bytes = 0;       ///< Of the rank that holds the most.
  double host_bytes = 0;         ///< Of the rank that off-loads the most, in its host's memory.
  double mfu = 0;                ///< Model FLOPs utilization, a part of the peak of what is computed in.
};

/// What layers and ends of a micro-batch take.
struct micro_batch_times {
  layer_times dense;                           ///< Of a layer without experts and without a window.
  layer_times sparse;                          ///< The same of a layer with experts.
  layer_times windowed_dense, windowed_sparse; ///< With a window, where layers have one.
  end_times ends;
  double whole_model = 0;   ///< Seconds of all layers and both ends.
  double whole_exposed = 0; ///< Of collectives of all layers, in one direction, what nothing hides.
};
micro_batch_times micro_batch_times_of(const language_model& m, const gpu_system& on, const training_setting& how);

/// Of a parameter's update, of whose optimizer states a rank has one.
double update_seconds(const gpu_system& on, const training_setting& how);

/// Part of the gradients' collectives that nothing hides.
double exposed_gradients(const language_model& m, const gpu_system& on, const training_setting& how);

/// In closed form: the slowest stage's time for all micro-batches, the bubble, gradients and optimizer.
iteration_estimate estimate_iteration(const language_model& m, const gpu_system& on, const training_setting& how);
/// The same with those times known.
iteration_estimate estimate_iteration(const language_model& m, const gpu_system& on, const training_setting& how,
                                      const micro_batch_times& times);

} // namespace ringmaster::training
