#pragma once

#include "training/computed/training_job.hpp"
#include "training/data/data_set.hpp"
#include "training/layers/softmax_loss.hpp"

#include <caf/expected.hpp>

#include <functional>
#include <vector>

namespace ringmaster::training {

/// The samples, of `count`, that a model is evaluated on, in order, and at most `samples_max`. Any number of the first
/// ones is spread over the whole set, because neighbours are often similar (Weyl's sequence of the golden ratio, each
/// sample once).
std::vector<uint32_t> tried_samples(uint32_t count, uint32_t samples_max);

/// The losses of a model on `tried_samples` of a data set. `weights`: each layer's, whole; they do not change.
/// `continues` is called now and then with the number of samples so far; false stops the evaluation there. Errors:
/// those of `data_set::fill`.
caf::expected<loss_sums> evaluate(const training_job& job, std::span<const std::span<const std::byte>> weights,
                                  const data_set& on, uint32_t samples_max = UINT32_MAX,
                                  const std::function<bool(uint32_t)>& continues = {});

} // namespace ringmaster::training
