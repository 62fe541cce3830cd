#include "planner/estimates/stage_layers.hpp"

#include "planner/estimates/layer_times.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <numeric>

namespace ringmaster::training {

namespace {

/// The model's layers in places: the embedding may have one of its own before them.
struct placed_layers {
  const language_model& m;
  uint32_t each;  ///< Places of a piece.
  uint32_t apart; ///< The first layer's place.

  placed_layers(const language_model& of, const training_setting& how)
    : m(of), each(how.chunk_layers(of.layers)), apart(each * how.pp * how.chunks_of_stage() == of.layers ? 0 : 1) {}

  uint32_t last_place() const { return apart == 0 ? m.layers - 1 : m.layers + 1; }

  void add_to(stage_layers& x, uint32_t piece, double part) const {
    const auto place = piece * each;
    const auto begin = std::min(m.layers, std::max(place, apart) - apart),
               end = std::min(m.layers, place + each - apart);
    const auto experts = m.expert_layers_in(begin, end);
    x.dense += part * (std::max(begin, end) - begin - experts);
    x.experts += part * experts;
    if (m.has_windows()) {
      const auto windowed_experts = m.windowed_expert_layers_in(begin, end);
      x.windowed_dense += part * (m.windowed_layers_in(begin, end) - windowed_experts);
      x.windowed_experts += part * windowed_experts;
    }
  }
};

} // namespace

stage_layers chunk_layers_of(const language_model& m, const training_setting& how, uint32_t index, uint32_t chunk) {
  ensure(index < how.pp && chunk < how.chunks_of_stage(), "a pipeline has that stage and that chunk");
  const placed_layers all{m, how};
  const auto piece = chunk * how.pp + index;
  stage_layers x;
  all.add_to(x, piece, 1);
  x.apart = all.apart > 0;
  x.embedding = piece == 0;
  x.logits = all.last_place() / all.each == piece;
  return x;
}

stage_layers stage_layers_of(const language_model& m, const training_setting& how, uint32_t index) {
  ensure(index < how.pp, "a pipeline has that stage");
  ensure(how.schedule != pipeline_schedule::dualpipe || how.pp % 2 == 0 || how.pp == 1,
         "DualPipe has an even number of stages");
  const placed_layers all{m, how};
  const auto p = how.pp;
  stage_layers x;
  const auto add = [&](uint32_t piece, double part) { all.add_to(x, piece, part); };
  if (how.schedule == pipeline_schedule::dualpipe) { // both copies of a rank's layers, the mean
    add(index, 0.5);
    add(p - 1 - index, 0.5);
  } else {
    for (uint32_t chunk = 0; chunk < how.chunks_of_stage(); ++chunk)
      add(how.schedule == pipeline_schedule::zb_v && chunk == 1 ? 2 * p - 1 - index : chunk * p + index, 1);
  }
  x.apart = all.apart > 0;
  x.embedding = index == 0;
  x.logits = how.turns_around() ? index == 0 : all.last_place() / all.each % p == index;
  ensure(x.dense + x.experts <= m.layers, "a stage has no more layers than the model");
  ensure(x.windowed_dense <= x.dense && x.windowed_experts <= x.experts, "layers with a window are layers");
  return x;
}

stage_layers all_layers_of(const language_model& m) {
  return stage_layers_of(m, {}, 0);
}

namespace {

/// Where layers with a window, or with experts, come in periods of more than two: the stage, of those of the first
/// period, that has the fewest layers with a window, of these the most with experts.
uint32_t most_of_a_kind(const language_model& m, const training_setting& how) {
  const auto period = m.has_windows() ? std::lcm(std::max(1u, m.full_every), m.experts.every) : m.experts.every;
  if (period <= 2)
    return 0;
  uint32_t most = 0;
  auto rank_of = [&](uint32_t index) {
    const auto has = stage_layers_of(m, how, index);
    return std::pair{has.dense + has.experts - has.windowed_dense - has.windowed_experts, has.experts};
  };
  auto best = rank_of(0);
  for (uint32_t index = 1; index < std::min(period + 1, how.pp - 1); ++index)
    if (auto x = rank_of(index); x > best) {
      best = x;
      most = index;
    }
  return most;
}

} // namespace

stage_span stages_that_count(const language_model& m, const training_setting& how) {
  const auto p = how.pp;
  if (p <= 3)
    return {{0, 1, 2}, p};
  stage_span x{{0, 1}, 2};
  if (m.has_windows() || m.experts.every > 1)
    x.indices[x.count++] = 2;
  if (const auto most = most_of_a_kind(m, how); most > 2 && most + 1 < p)
    x.indices[x.count++] = most;
  const auto each = how.chunk_layers(m.layers);
  const auto sparse_from = m.experts.count == 0 ? 0 : m.experts.dense_first / each + 1;
  if (sparse_from > x.indices[x.count - 1] && sparse_from < p - 1)
    x.indices[x.count++] = sparse_from;
  const auto last_full = how.chunks_of_stage() > 1 || each * p == m.layers ? 0 : (m.layers + 1) / each - 1;
  if (last_full > x.indices[x.count - 1] && last_full < p - 1)
    x.indices[x.count++] = last_full;
  x.indices[x.count++] = p - 1;
  ensure(x.count <= std::size(x.indices), "there is room for each stage that counts");
  return x;
}

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
