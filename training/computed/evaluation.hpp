#pragma once

#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"
#include "training/layers/softmax_loss.hpp"

#include <caf/expected.hpp>

#include <functional>
#include <vector>

namespace ringmaster::training {

/// Which of so many samples a model is tried on, and in which order, where at most `samples_max` are to be: however
/// many of these are taken, they are spread over all, for what lies one behind the other is often alike (Weyl's
/// sequence of the golden ratio, each sample once).
std::vector<uint32_t> tried_samples(uint32_t count, uint32_t samples_max);

/// What a model makes of `tried_samples` of a set. `weights`: each layer's, whole. No layer learns. `goes_on` is asked
/// now and then, with how many have been tried; when it says no, these are all. Errors: those of `data_set::fill`.
caf::expected<loss_sums> evaluate(const training_job& job, std::span<const std::span<const std::byte>> weights,
                                  const data_set& on, uint32_t samples_max = UINT32_MAX,
                                  const std::function<bool(uint32_t)>& goes_on = {});

} // namespace ringmaster::training
