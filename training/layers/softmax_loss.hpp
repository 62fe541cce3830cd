#pragma once

#include "training/layers/layer.hpp"

namespace ringmaster::training {

/// Of some samples.
struct loss_sums {
  double loss = 0;      ///< Cross-entropies, added up; in nats.
  uint64_t samples = 0; ///< Labels, where a sample has several.
  uint64_t right = 0;   ///< Whose label has the largest output.

  void add(const loss_sums& x) {
    loss += x.loss;
    samples += x.samples;
    right += x.right;
  }
};

/// Softmax with cross-entropy: outputs are [labels x classes], a label is below `classes`. The gradient by the outputs
/// of the mean over `of_all` labels, of which these are some; null: not wanted.
loss_sums softmax_loss(precision as, uint64_t classes, const std::byte* outputs, std::span<const uint32_t> labels,
                       uint64_t of_all, std::byte* by_output);

} // namespace ringmaster::training
