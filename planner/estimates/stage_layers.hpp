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

/// Parameters on a rank, those apart that data-parallel ranks share in different numbers. Unsharded.
struct rank_parameters {
  double dense = 0;   ///< Over context x data ranks.
  double experts = 0; ///< Over tensor x context x data / expert ranks.

  double sum() const { return dense + experts; }
  rank_parameters& operator+=(const rank_parameters& x) {
    dense += x.dense, experts += x.experts;
    return *this;
  }
  friend rank_parameters operator*(double times, const rank_parameters& x) {
    return {times * x.dense, times * x.experts};
  }
};

/// Of a layer.
rank_parameters layer_parameters(const language_model& m, const training_setting& how, layer_kind kind);
/// Of the embedding's table, or the output's.
double table_parameters(const language_model& m, const training_setting& how);
/// Of what the rank that makes the logits has for them: its own table, if it has not the embedding's, and the modules
/// that predict further tokens, each with a layer as the last ones are.
rank_parameters output_parameters(const language_model& m, const training_setting& how);

/// Of each part of the model, on a rank that has it.
struct part_parameters {
  part_parameters(const language_model& m, const training_setting& how);

  rank_parameters dense, experts;               ///< A layer's.
  rank_parameters linear_dense, linear_experts; ///< Those with linear attention, if there are any.
  bool has_linear = false;
  double table = 0; ///< The embedding's.
  rank_parameters output;
  /// Of a rank of the stage that has these; DualPipe's: of one of its two copies, the mean.
  rank_parameters of(const stage_layers& has, const training_setting& how) const;
};
/// Of the stage that has the most.
rank_parameters most_parameters(const language_model& m, const training_setting& how);

} // namespace ringmaster::training
