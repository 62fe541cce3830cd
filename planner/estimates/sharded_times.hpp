#pragma once

#include "planner/estimates/iteration_estimate.hpp"

namespace ringmaster::training {

/// Seconds that FSDP's collectives take in an iteration: exposed, and hidden by the layers' work.
struct sharded_times {
  double exposed = 0, hidden = 0;
};

/// Seconds for which a layer's own exchanges, with experts or along the context ranks, occupy the network cards that
/// the shards' rings also need. A gather at the same time takes that much longer.
double busy_cards(const layer_times& layer, const gpu_system& on, const training_setting& how);

/// Seconds of FSDP's collectives for a layer, each time.
struct shard_exchanges {
  double gather = 0, scatter = 0;
};
shard_exchanges shard_exchanges_of(const language_model& m, const gpu_system& on, const training_setting& how,
                                   layer_kind kind);

/// A layer's times if its forward runs beside a gather, and its backward beside a gather and a scatter, of equal
/// layers: the collectives' kernels take processors and memory bandwidth from its own, which take up to twice as long
/// (Lee et al. 2025, "Characterizing Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning").
layer_times beside_shards(layer_times alone, const shard_exchanges& moved, const gpu_system& on);

/// The schedule of strategies/fully_sharded.cpp, walked as two streams: gathers of the next layer and scatters of the
/// last gradient in a row on one, layers on the other. Micro-batches after the third are as long as the third. For a
/// rank without stages whose weights `how.shard_ranks` ranks share.
sharded_times sharded_times_of(const language_model& m, const gpu_system& on, const training_setting& how,
                               const micro_batch_times& times);

} // namespace ringmaster::training
