#include "planner/estimates/rank_parameters.hpp"

#include "planner/estimates/layer_times.hpp"
#include "runtime/invariants/ensure.hpp"

namespace ringmaster::training {

namespace {

/// Of a layer's attention, what tensor-parallel ranks do not cut, as Megatron Core has it: norms, and what makes the
/// small common vectors of latent attention.
double whole_on_each(const language_model& m) {
  const double h = m.hidden;
  auto norms = m.norms * m.norm_vectors * h + (m.query_key_norms == query_key_norm::of_a_head ? 2.0 * m.head_size : 0);
  if (auto& x = m.indexer; x.heads > 0) // all of it
    norms += (m.latent.query_rank > 0 ? m.latent.query_rank : h) * x.size() + h * (x.head_size + x.heads)
             + 2.0 * x.head_size;
  const auto& latent = m.latent;
  if (latent.key_value_rank == 0)
    return norms;
  const double common = latent.query_rank + latent.key_value_rank;
  return norms + common + h * (common + latent.rotary_size);
}

/// Of a layer's attention with its norms, on a rank. Where there are more ranks than heads of keys and values, each has
/// one whole.
double attention_parameters(const parameter_counts& x, const language_model& m, double t) {
  const auto whole = whole_on_each(m);
  if (m.latent.key_value_rank > 0 || t <= m.key_value_heads)
    return (x.attention - whole) / t + whole;
  const auto one_head = 2.0 * m.hidden * m.head_size;
  return (x.attention - whole - m.key_value_heads * one_head) / t + whole + one_head;
}

/// The same of linear attention, whose norms are whole on each rank.
double linear_parameters(const parameter_counts& x, const language_model& m, double t) {
  const auto whole = 1.0 * m.norms * m.norm_vectors * m.hidden + m.linear.value_size;
  return (x.linear - whole) / t + whole;
}

rank_parameters layer_parameters(const parameter_counts& x, const language_model& m, const training_setting& how,
                                 layer_kind kind) {
  const double t = how.tp;
  const auto attention = kind.windowed && m.linear.value_heads > 0 ? linear_parameters(x, m, t)
                                                                   : attention_parameters(x, m, t);
  ensure(attention >= 0, "no rank has less than no parameters of attention");
  if (!kind.experts)
    return {attention + x.dense / t, 0};
  ensure(how.ep > 0, "a layer with experts has ranks that share them");
  return {attention + x.router + x.shared / t, x.one_expert * m.experts.count / how.ep};
}

rank_parameters output_parameters(const parameter_counts& x, const language_model& m, const training_setting& how) {
  const bool own_table = !m.tied || how.pp > 1;
  rank_parameters result{(own_table ? table_parameters(m, how) : 0) + x.multi_token / how.tp, 0};
  return result += m.multi_token * layer_parameters(x, m, how, {m.experts.count > 0, false});
}

} // namespace

rank_parameters layer_parameters(const language_model& m, const training_setting& how, layer_kind kind) {
  return layer_parameters(parameter_counts_of(m), m, how, kind);
}

double table_parameters(const language_model& m, const training_setting& how) {
  return padded_vocabulary(m, how.tp) * m.hidden / how.tp;
}

rank_parameters output_parameters(const language_model& m, const training_setting& how) {
  return output_parameters(parameter_counts_of(m), m, how);
}

part_parameters::part_parameters(const language_model& m, const training_setting& how) {
  const auto x = parameter_counts_of(m);
  dense = layer_parameters(x, m, how, {false, false});
  experts = layer_parameters(x, m, how, {true, false});
  if (m.linear.value_heads > 0) { // else they have the same
    linear_dense = layer_parameters(x, m, how, {false, true});
    linear_experts = layer_parameters(x, m, how, {true, true});
  }
  has_linear = m.linear.value_heads > 0;
  table = table_parameters(m, how);
  output = output_parameters(x, m, how);
}

rank_parameters part_parameters::of(const stage_layers& has, const training_setting& how) const {
  auto result = (has.dense - (has_linear ? has.windowed_dense : 0)) * dense;
  result += (has.experts - (has_linear ? has.windowed_experts : 0)) * experts;
  if (has_linear) {
    result += has.windowed_dense * linear_dense;
    result += has.windowed_experts * linear_experts;
  }
  // DualPipe's rank of both ends has each once, though its layers are there twice
  if (has.embedding)
    result += {table / how.copies(), 0};
  if (has.logits)
    result += 1.0 / how.copies() * output;
  ensure(result.dense >= 0 && result.experts >= 0, "no rank has less than no parameters");
  return result;
}

rank_parameters most_parameters(const language_model& m, const training_setting& how) {
  const part_parameters parts{m, how};
  return largest_of_stages(
    m, how, [&](uint32_t stage) { return parts.of(stage_layers_of(m, how, stage), how); }, &rank_parameters::sum);
}

} // namespace ringmaster::training
