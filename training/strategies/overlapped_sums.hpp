#pragma once

#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

/// Gradients of a data-parallel rank, by layer, that are summed over the ranks on a second stream, a bucket of
/// --chunks layers at once.
class overlapped_sums {
public:
  /// `scatters`: the rank gets its shard of each sum only.
  overlapped_sums(rank& self, const model& m, bool scatters)
    : self_(self), model_(m), scatters_(scatters), own_(m.layers), sums_(m.layers) {}

  /// The forward and backward of the rank's micro-batches. In the last one's backward each bucket is summed as soon as
  /// its last layer is done. `gathered`: layers whose weights are on their way, and are needed by the first forward.
  strategy run_micro_batches(std::vector<weight>& weights, std::vector<handle<weight>> gathered = {});
  /// The sum of this layer.
  handle<weight_gradient> take(uint32_t layer) { return std::move(sums_[layer]); }

private:
  strategy run_backward(std::vector<activation>& inputs, const std::vector<weight>& weights, bool is_last);

  rank& self_;
  const model& model_;
  bool scatters_;
  std::vector<weight_gradient> own_; ///< Of the micro-batches so far.
  std::vector<handle<weight_gradient>> sums_;
};

} // namespace ringmaster::training
