#pragma once

#include "planner/costs/transformer_layers.hpp"
#include "planner/costs/transformer_memory.hpp"

namespace ringmaster::training {

/// Seconds of a strategy's collectives and ring hops.
class transformer_exchanges {
public:
  /// `stage_size`: simulated ranks of a stage. `shards_represent_all`: as transformer_memory has it.
  transformer_exchanges(const language_model& trained, const gpu_system& on, const training_setting& how,
                        const transformer_places& places, const transformer_memory& memory,
                        const transformer_layers& layers, uint32_t stage_size, bool shards_represent_all);

  double collective_time(const pending& x) const;
  /// An all_reduce of gradients, `bytes` of each parameter, over the ranks that share them.
  double gradient_time(const rank_parameters& held, double bytes) const;
  /// A ring's hop of keys and values, or of their gradients, which takes the same time.
  double keys_time(const value_tag& x) const;

private:
  double of_activations(const pending& x) const;
  double gathered_keys_time(const pending& x) const;
  double columns_time(const pending& x) const;
  /// A ring of shards.
  double shards_time(const pending& x, const rank_parameters& held) const;
  /// Bytes per parameter.
  double moved_bytes(op what) const {
    return what == op::all_gather ? bytes_of(how_.computed_in).gathered : how_.gradient_bytes;
  }

  const language_model& trained_;
  const gpu_system& on_;
  const training_setting& how_;
  const transformer_places& places_;
  const transformer_memory& memory_;
  const transformer_layers& layers_;
  uint32_t stage_size_;
  bool shards_represent_all_;
  double gradients_exposed_; ///< Part of their collectives.
};

} // namespace ringmaster::training
