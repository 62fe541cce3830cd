#pragma once

#include "runtime/training/simulated/cost_model.hpp"
#include "runtime/training/transformer/iteration_estimate.hpp"

#include <memory>

namespace ringmaster::training {

/// A GPT on a system, in seconds and bytes, with the terms of iteration_estimate.hpp. A sample is a sequence. The
/// first layer's weight has the embedding's with it. A value that is kept for the backward, a layer's input, counts
/// what the whole layer keeps; recomputed, its input. Of the setting, shape, recomputation and sequence parallelism
/// count.
std::unique_ptr<cost_model> transformer_costs(const gpt& trained, const gpu_system& on, const parallel_setting& how);

} // namespace ringmaster::training
