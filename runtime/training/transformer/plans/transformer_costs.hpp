#pragma once

#include "runtime/training/simulated/cost_model.hpp"
#include "runtime/training/transformer/estimates/iteration_estimate.hpp"

#include <memory>

namespace ringmaster::training {

/// Layers that a strategy of pipeline stages is given for a model's: more than it has where they do not divide.
uint32_t places_of(const language_model& trained, const parallel_setting& how);

/// A transformer on a system, in seconds and bytes, with the terms of iteration_estimate.hpp. A sample is a sequence.
/// The first layer's weight has the embedding's with it. A value that is kept for the backward, a layer's input, counts
/// what the whole layer keeps; recomputed, its input. Of the setting, shape, recomputation and sequence parallelism
/// count, and what the context's and the experts' ranks do is in a layer's time.
std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how);
/// The same for a world of that shape, of fewer ranks that stand for all, since along a side they do the same: two for
/// all tensor-parallel ones, two for all data-parallel ones; of those that share weights fully two, and two of their
/// groups, along the data side. What they share, gather and sum is as of all. Where weights are shared fully, what
/// tensor-parallel ranks do is in a layer's time.
std::unique_ptr<cost_model> transformer_costs(const language_model& trained, const gpu_system& on,
                                              const parallel_setting& how, const mesh& simulated);

} // namespace ringmaster::training
