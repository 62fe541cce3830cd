#pragma once

#include "planner/estimates/rank_parameters.hpp"
#include <ringmaster/strategy/value.hpp>

namespace ringmaster::training {

/// Layers that a strategy is given for a transformer's. Those of a stage are places: where the layers do not divide
/// among stages, the embedding has the first one for itself, the logits the one behind the last layer, and what is left
/// is empty (Megatron-LM's layouts). Where a strategy itself takes positions to experts a layer is two places,
/// attention and network: every second one is of experts.
class transformer_places {
public:
  transformer_places(const language_model& trained, const parallel_setting& how, bool network_apart);

  uint32_t count() const { return whole_ * parts_; }
  /// Places at the begin whose networks have no experts: model::dense_first.
  uint32_t dense_first() const { return parts_ * (trained_.experts.dense_first + before_); }

  bool is_layer(uint32_t place) const {
    const auto at = place / parts_;
    return at >= before_ && at - before_ < trained_.layers;
  }
  /// Of an embedding that has a place the input is a few bytes a position; behind the logits are places that do
  /// nothing.
  bool takes_nothing(uint32_t place) const {
    const auto at = place / parts_;
    return at < before_ || (at > trained_.layers - 1 + 2 * before_ && place < count());
  }
  bool is_first(uint32_t place) const { return place == 0; }
  /// Whose output the logits come of.
  bool has_output(uint32_t place) const { return place == (trained_.layers - 1 + 2 * before_) * parts_; }
  /// Of a layer: whether its attention is here, and whether its network is.
  bool has_attention(uint32_t place) const { return place % parts_ == 0; }
  bool has_network(uint32_t place) const { return place % parts_ + 1 == parts_; }
  layer_kind kind_of(uint32_t place) const {
    const auto layer = place / parts_ - before_;
    return {trained_.has_experts(layer), trained_.is_windowed(layer)};
  }
  /// That a rank has whole, or shares with those of its tensor group.
  rank_parameters parameters(uint32_t place) const;

private:
  const language_model& trained_;
  const parallel_setting& how_;
  uint32_t parts_;  ///< Of a layer.
  uint32_t whole_;  ///< Places of whole layers.
  uint32_t before_; ///< Such places before the first layer.
};

} // namespace ringmaster::training
