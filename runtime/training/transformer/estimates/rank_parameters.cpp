#include "runtime/training/transformer/estimates/rank_parameters.hpp"

#include "runtime/training/transformer/estimates/layer_times.hpp"
#include "runtime/training/transformer/estimates/stage_layers.hpp"

namespace ringmaster::training {

rank_parameters layer_parameters(const language_model& m, const parallel_setting& how, bool experts) {
  const auto x = parameter_counts_of(m);
  const double t = how.shape.tensor;
  if (!experts)
    return {(x.attention + x.dense) / t, 0};
  return {(x.attention + x.router + x.one_expert * m.experts.shared) / t, x.one_expert * m.experts.count / how.expert};
}

double table_parameters(const language_model& m, const parallel_setting& how) {
  return padded_vocabulary(m, how.shape.tensor) * m.hidden / how.shape.tensor;
}

rank_parameters output_parameters(const language_model& m, const parallel_setting& how) {
  const auto x = parameter_counts_of(m);
  const bool own_table = !m.tied || how.shape.pipeline > 1;
  rank_parameters result{(own_table ? table_parameters(m, how) : 0) + x.multi_token / how.shape.tensor, 0};
  return result += m.multi_token * layer_parameters(m, how, m.experts.count > 0);
}

rank_parameters parameters_on_rank(const language_model& m, const parallel_setting& how, uint32_t stage) {
  const auto has = stage_layers_of(m, how, stage);
  auto result = has.dense * layer_parameters(m, how, false);
  result += has.experts * layer_parameters(m, how, true);
  // DualPipe's rank of both ends has each once, though its layers are there twice
  if (has.embedding)
    result += {table_parameters(m, how) / how.copies(), 0};
  if (has.logits)
    result += 1.0 / how.copies() * output_parameters(m, how);
  return result;
}

rank_parameters most_parameters(const language_model& m, const parallel_setting& how) {
  return largest_of_stages(
    m, how, [&](uint32_t stage) { return parameters_on_rank(m, how, stage); }, &rank_parameters::sum);
}

} // namespace ringmaster::training
