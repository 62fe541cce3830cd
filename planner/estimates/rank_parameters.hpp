#pragma once

#include "planner/estimates/stage_layers.hpp"

namespace ringmaster::training {

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
