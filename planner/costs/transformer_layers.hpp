#pragma once

#include "planner/costs/transformer_places.hpp"
#include "planner/estimates/layer_times.hpp"

#include <map>

namespace ringmaster::training {

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

} // namespace ringmaster::training
