#pragma once

#include "planner/estimates/iteration_estimate.hpp"

namespace ringmaster::training {

/// What FSDP's second stream moves in an iteration: seconds that layers wait for it, and those behind their work.
struct sharded_times {
  double exposed = 0, hidden = 0;
};

/// Of a forward or a backward of such a layer, the seconds for which its own exchanges, with experts or along the
/// context's ranks, have the cards that the shards' rings need, too: a gather beside it takes so much longer.
double busy_cards(const layer_times& layer, const gpu_system& on, const parallel_setting& how);

/// What FSDP moves for a layer, each time: seconds.
struct shard_exchanges {
  double gather = 0, scatter = 0;
};
shard_exchanges shard_exchanges_of(const language_model& m, const gpu_system& on, const parallel_setting& how,
                                   layer_kind kind);

/// A layer whose forward goes beside a gather, and its backward beside a gather and a scatter, of layers like it: the
/// collectives' kernels take processors and memory traffic from its own, which are up to twice as long where both run
/// (Lee et al. 2025, "Characterizing Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning").
layer_times beside_shards(layer_times alone, const shard_exchanges& moved, const gpu_system& on);

/// The schedule of strategies/fully_sharded.cpp, walked as two streams: gathers of the next layer and scatters of the
/// last gradient in a row on one, layers on the other. Micro-batches behind the third are as long as that. Of a rank
/// without stages, whose weights `how.shard` ranks share.
sharded_times sharded_times_of(const language_model& m, const gpu_system& on, const parallel_setting& how,
                               const micro_batch_times& times);

} // namespace ringmaster::training
