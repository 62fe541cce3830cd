#pragma once

#include "planner/costs/transformer_layers.hpp"
#include "planner/costs/transformer_memory.hpp"

namespace ringmaster::training {

/// Seconds of what a strategy's ranks tell each other.
class transformer_exchanges {
public:
  /// `stage_size`: simulated ranks of a stage. `shards_stand_for_all`: as transformer_memory has it.
  transformer_exchanges(const language_model& trained, const gpu_system& on, const parallel_setting& how,
                        const transformer_places& places, const transformer_memory& memory,
                        const transformer_layers& layers, uint32_t stage_size, bool shards_stand_for_all);

  double collective_time(const pending& x) const;
  /// Gradients, so many bytes of each parameter, all_reduced over those that share them.
  double gradient_time(const rank_parameters& held, double bytes) const;
  /// A ring's hop of keys and values, or of the gradients by them, which takes as long.
  double keys_time(const value_tag& x) const;

private:
  double of_activations(const pending& x) const;
  double gathered_keys_time(const pending& x) const;
  double columns_time(const pending& x) const;
  /// A ring of shards.
  double shards_time(const pending& x, const rank_parameters& held) const;
  /// Of a parameter, in one of these.
  double moved_bytes(op what) const {
    return what == op::all_gather ? bytes_of(how_.computed_in).gathered : how_.gradient_bytes;
  }

  const language_model& trained_;
  const gpu_system& on_;
  const parallel_setting& how_;
  const transformer_places& places_;
  const transformer_memory& memory_;
  const transformer_layers& layers_;
  uint32_t stage_size_;
  bool shards_stand_for_all_;
  double gradients_exposed_; ///< Part of their collectives.
};

} // namespace ringmaster::training
