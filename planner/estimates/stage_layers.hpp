#pragma once

#include "planner/estimates/training_setting.hpp"

#include <functional>

namespace ringmaster::training {

/// What a pipeline's stage has of a model.
struct stage_layers {
  double dense = 0;                                ///< Layers without experts.
  double experts = 0;                              ///< Layers with them.
  double windowed_dense = 0, windowed_experts = 0; ///< Of these, the layers with a window.
  bool embedding = false;
  bool logits = false;
  bool apart = false; ///< Embedding and logits have a place each, as a layer has.
};

/// Of stage `index`, from 0. If layers do not divide among stages and their chunks, the embedding has the first place,
/// the logits have the place after the last layer, and the rest is empty.
stage_layers stage_layers_of(const language_model& m, const training_setting& how, uint32_t index);

/// The same of one of its chunks; chunks alternate among the stages.
stage_layers chunk_layers_of(const language_model& m, const training_setting& how, uint32_t index, uint32_t chunk);

/// All of the model's.
stage_layers all_layers_of(const language_model& m);

/// Stages of which one is the slowest, and one holds the most: the first two, the next one, too, where layers have
/// windows or experts in periods, the one of a longer period that has the most of these, the first that has experts
/// only, the last that has layers only, the last.
struct stage_span {
  uint32_t indices[8];
  uint32_t count;
  const uint32_t* begin() const { return indices; }
  const uint32_t* end() const { return indices + count; }
};
stage_span stages_that_count(const language_model& m, const training_setting& how);

/// Of what `of` says of each of these stages, the one whose `size` is the largest.
template <class Of, class Size = std::identity>
auto largest_of_stages(const language_model& m, const training_setting& how, Of of, Size size = {}) {
  const auto stages = stages_that_count(m, how);
  auto largest = of(*stages.begin());
  for (auto at = stages.begin() + 1; at != stages.end(); ++at)
    if (auto x = of(*at); std::invoke(size, x) > std::invoke(size, largest))
      largest = x;
  return largest;
}

} // namespace ringmaster::training
