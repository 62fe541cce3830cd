#pragma once

#include "planner/estimates/layer_times.hpp"
#include "planner/estimates/stage_layers.hpp"
#include "training/language/executor.hpp"

#include <ringmaster/strategy/value.hpp>

#include <map>

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

/// Bytes that a rank holds of a transformer's places. A layer's input that is kept for the backward counts everything
/// that the layer keeps, or only the input with recomputation.
class transformer_memory {
public:
  /// `context`: ranks that share positions within the strategy itself. `shards_represent_all`: two ranks represent all
  /// that share weights. `fewer_sharers`: fewer ranks are simulated than share weights; parts have their true size.
  transformer_memory(const language_model& trained, const training_setting& how, const transformer_places& places,
                     uint32_t context, bool shards_represent_all, bool fewer_sharers)
    : trained_(trained), how_(how), places_(places), context_(context), shards_represent_all_(shards_represent_all),
      fewer_sharers_(fewer_sharers) {}

  double bytes_of(const value_tag& x) const;
  /// What an operation needs while it runs.
  double working_bytes(const pending& x) const;
  /// Of a place's shard.
  rank_parameters parameters(const value_tag& x) const;
  /// The parameters whose optimizer states a rank has: context ranks share them as well; experts have other sharers.
  double state_parameters(value_tag x) const;
  /// Of an activation of a rank's positions of some samples.
  double plain_bytes(double samples) const {
    return bf16_bytes * samples * trained_.sequence / how_.cp * trained_.hidden;
  }
  /// Between layers tensor-parallel ranks have a part of the positions each.
  bool in_sequence() const { return how_.sequence_parallel && how_.tp > 1; }
  /// A value's size in samples of this rank: values sent to experts include other ranks' samples.
  uint64_t own_samples(const value_tag& x) const;

private:
  double activation_bytes_of(const value_tag& x) const;
  bool is_part_of_tensor_rank(const value_tag& x) const {
    return x.has == form::columns || (x.has == form::sequence && x.part.count > context_);
  }
  bool is_kept(const value_tag& x) const;

  const language_model& trained_;
  const training_setting& how_;
  const transformer_places& places_;
  uint32_t context_;
  bool shards_represent_all_; ///< Two for those of all that share weights fully.
  bool fewer_sharers_;        ///< Than there are.
};

/// Times of layers, embedding and loss, computed once for each number of samples. Not thread-safe.
class transformer_layers {
public:
  transformer_layers(const language_model& trained, const gpu_system& on, const training_setting& how,
                     const transformer_places& places)
    : trained_(trained), on_(on), how_(how), places_(places) {}

  /// Of the layer at this place; zeros if it has none.
  layer_times layer_of(uint64_t samples, uint32_t place) const;
  const end_times& ends_of(uint64_t samples) const;
  /// How long a receiver waits for an activation, or its gradient, between stages.
  double hop_of(uint64_t samples) const;
  training_setting with_samples(uint64_t samples) const;

private:
  struct times {
    std::map<uint32_t, layer_times> layers; ///< By experts and windows.
    end_times ends;
    double hop = -1; ///< Negative: not computed yet.
  };

  const language_model& trained_;
  const gpu_system& on_;
  const training_setting& how_;
  const transformer_places& places_;
  mutable std::map<uint64_t, times> known_; ///< By samples.
};

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
