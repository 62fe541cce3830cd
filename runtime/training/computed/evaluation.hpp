#pragma once

#include "runtime/training/computed/training_job.hpp"
#include "runtime/training/data/data_set.hpp"
#include "runtime/training/layers/softmax_loss.hpp"

#include <functional>

namespace ringmaster::training {

/// What a model makes of the first `samples_max` samples of a set. `weights`: each layer's, whole. No layer learns.
/// `goes_on` is asked now and then, with how many have been tried; when it says no, these are all.
loss_sums evaluate(const training_job& job, std::span<const std::span<const std::byte>> weights, const data_set& on,
                   uint32_t samples_max = UINT32_MAX, const std::function<bool(uint32_t)>& goes_on = {});

} // namespace ringmaster::training
