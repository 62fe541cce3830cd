#pragma once

#include "planner/estimates/rank_parameters.hpp"
#include <ringmaster/strategy/value.hpp>

namespace ringmaster::training {

/// The layers that a strategy is given for a transformer, called places. If the layers do not divide among stages, the
/// embedding has the first place, the logits the place after the last layer, and the rest is empty (Megatron-LM's
/// layouts). If the strategy itself sends positions to experts, a layer is two places, attention and network.
class transformer_places {
public:
  transformer_places(const language_model& trained, const training_setting& how, bool network_apart);

  uint32_t count() const { return whole_ * parts_; }
  /// The first places, whose networks have no experts: model::dense_first.
  uint32_t dense_first() const { return parts_ * (trained_.experts.dense_first + before_); }

  bool is_layer(uint32_t place) const {
    const auto at = place / parts_;
    return at >= before_ && at - before_ < trained_.layers;
  }
  /// Whether the place needs no input: an embedding with its own place reads a few bytes a position, and places after
  /// the logits are empty.
  bool takes_nothing(uint32_t place) const {
    const auto at = place / parts_;
    return at < before_ || (at > trained_.layers - 1 + 2 * before_ && place < count());
  }
  bool is_first(uint32_t place) const { return place == 0; }
  /// Whether the logits are computed here.
  bool has_output(uint32_t place) const { return place == (trained_.layers - 1 + 2 * before_) * parts_; }
  /// Whether a layer's attention is here, and whether its network is.
  bool has_attention(uint32_t place) const { return place % parts_ == 0; }
  bool has_network(uint32_t place) const { return place % parts_ + 1 == parts_; }
  layer_kind kind_of(uint32_t place) const {
    const auto layer = place / parts_ - before_;
    return {trained_.has_experts(layer), trained_.is_windowed(layer)};
  }
  /// Parameters on a rank, unsharded by data parallelism.
  rank_parameters parameters(uint32_t place) const;

private:
  const language_model& trained_;
  const training_setting& how_;
  uint32_t parts_;  ///< Of a layer.
  uint32_t whole_;  ///< Places of whole layers.
  uint32_t before_; ///< Such places before the first layer.
};

} // namespace ringmaster::training
