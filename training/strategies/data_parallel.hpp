#pragma once

#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

/// What data-parallel ranks share of the model, and when they sum their gradients. Each has whole layers to compute
/// with.
struct data_parallel_plan {
  /// Of a layer's gradient, when it is summed over the ranks.
  enum class sum : uint8_t {
    after_last_backward, ///< Right after its backward of the last micro-batch.
    in_the_end,          ///< When all backwards have ended, right before the layer's update.
    after_each_backward  ///< Right after each micro-batch's, so that no rank keeps it whole.
  };

  sum summed = sum::after_last_backward;
  bool shards_weights = false; ///< A layer is gathered for each forward and each backward.
  bool shards_states = false;  ///< A rank updates its shard; whole weights are gathered again behind that.
  bool scatters = false;       ///< A rank gets its shard of a sum only, which must be `shards_states`.
  bool adds_first = false;     ///< The first micro-batch's gradient is added to an empty sum, too, instead of being it.
};

/// A rank. Its part of the global batch goes through the model one micro-batch after the other; gradients accumulate,
/// and each layer is updated in the end.
strategy run_data_parallel(rank& self, const model& m, data_parallel_plan plan);

} // namespace ringmaster::training
