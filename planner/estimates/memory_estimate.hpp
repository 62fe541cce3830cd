#pragma once

#include "planner/estimates/training_setting.hpp"

namespace ringmaster::training {

/// Bytes that a layer keeps for its backward, of `samples` samples, on each of the ranks that share it: what products,
/// scores, norms and gates read again; for GPTs with scores in memory, Korthikanti et al. 2022, table 2.
double activation_bytes(const language_model& m, double samples, const training_setting& how, layer_kind kind);

/// What a layer's backward holds where keys go around in a ring: those at hand, those that come, gradients by keys that
/// go, that come, and that are just made.
double ring_bytes(const language_model& m, const training_setting& how, double samples);

/// Bytes a parameter, on each of `ranks` data-parallel ones, in mixed precision with Adam (Rajbhandari et al. 2020):
/// 16 without sharding, 4 + 12/N, 2 + 14/N and 16/N in stages 1 to 3. Megatron-LM keeps gradients in 4 bytes: 2 more.
double zero_bytes(uint32_t stage, double ranks, double gradient_bytes = 2);

/// Of a rank, bytes.
struct memory_parts {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double buffers = 0; ///< What is in flight: gathered weights, a layer that runs again, outputs.
  double logits = 0;
  double host = 0; ///< In the host's memory, of what is off-loaded; not in the total.

  double total() const { return weights + gradients + optimizer + activations + buffers + logits; }
};

/// Of a rank of a stage.
memory_parts memory_of(const language_model& m, const training_setting& how, uint32_t stage);
/// Of the rank that holds the most.
memory_parts memory_of(const language_model& m, const training_setting& how);

/// Layers' worth of a micro-batch's activations that a rank of the first stage keeps: L under 1F1B, L (1 +
/// (p-1)/(pv)) interleaved.
double layers_kept_by_first(const language_model& m, const training_setting& how);

} // namespace ringmaster::training
