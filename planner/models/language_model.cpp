#include "planner/models/language_model.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// Of a layer's attention, without norms and biases.
double attention_matrices(const language_model& m) {
  const double h = m.hidden, a = m.heads, size = m.head_size;
  if (auto& x = m.latent; x.key_value_rank > 0) {
    const auto queries = x.query_rank > 0 ? x.query_rank * (h + a * (size + x.rotary_size))
                                          : h * a * (size + x.rotary_size);
    return queries + h * (x.key_value_rank + x.rotary_size) + x.key_value_rank * a * (size + x.value_size)
           + a * x.value_size * h;
  }
  return h * size * ((m.gated_attention ? 3 : 2) * a + 2.0 * m.key_value_heads);
}

/// Of a layer's linear attention: keys and queries, values and their gate, two numbers a head, the output.
double linear_matrices(const language_model& m) {
  auto& x = m.linear;
  return m.hidden * (2 * x.keys() + 3 * x.values() + 2.0 * x.value_heads);
}

/// Of the heads that choose keys: their queries, made of the latent ones where there are any; a key; their weights.
double indexer_matrices(const language_model& m) {
  auto& x = m.indexer;
  const double h = m.hidden, from = m.latent.query_rank > 0 ? m.latent.query_rank : h;
  return x.heads == 0 ? 0 : from * x.size() + h * (x.head_size + x.heads);
}

double network_matrices(const language_model& m, uint32_t width) {
  return (m.gated ? 3.0 : 2.0) * m.hidden * width;
}

/// Layers by what differs between them.
struct layer_counts {
  double sparse, dense, full, linear;

  explicit layer_counts(const language_model& m)
    : sparse(m.expert_layers_in(0, m.layers)), dense(m.layers - sparse),
      full(m.linear.value_heads > 0 ? m.layers - m.windowed_layers_in(0, m.layers) : m.layers),
      linear(m.layers - full) {}
};

/// Of a position's products with weights.
double active_matrices(const language_model& m) {
  const layer_counts layers{m};
  const auto kept = m.experts.capacity > 0 ? std::min(m.experts.capacity, 1.0) : 1; // the rest is dropped for certain
  const auto taken = network_matrices(m, m.experts.width) * m.experts.chosen * kept
                     + network_matrices(m, m.experts.shared_width) + static_cast<double>(m.hidden) * m.experts.count;
  const auto attention = attention_matrices(m) + indexer_matrices(m);
  const auto modules = m.multi_token
                       * (2.0 * m.hidden * m.hidden + attention
                          + (layers.sparse > 0 ? taken : network_matrices(m, m.width)));
  return layers.full * attention + layers.linear * linear_matrices(m) + layers.sparse * taken
         + layers.dense * network_matrices(m, m.width) + modules + (1.0 + m.multi_token) * m.hidden * m.vocabulary;
}

/// Multiplications of a position in a layer's attention, beside those with weights; of its mean keys, or of twice as
/// many, where what a causal mask leaves out counts, too.
double attended(const language_model& m, bool windowed, bool whole_scores) {
  if (windowed && m.linear.value_heads > 0) // what a state is multiplied with: to forget, to learn, to be read
    return 3 * m.linear.values() * m.linear.key_size;
  const auto whole = whole_scores ? 2 : 1;
  const auto scores = m.heads * m.key_and_value_size() * m.keys_seen(windowed);
  if (windowed)
    return scores + m.indexer.size() * m.keys_seen(false) * whole;
  return scores * whole;
}

} // namespace

language_model gpt_shape(std::string name, uint32_t hidden, uint32_t heads, uint32_t layers, uint32_t sequence,
                         uint32_t vocabulary) {
  language_model x;
  x.name = std::move(name);
  x.hidden = hidden;
  x.heads = x.key_value_heads = heads;
  x.head_size = hidden / std::max(heads, 1u);
  x.layers = layers;
  x.sequence = sequence;
  x.vocabulary = vocabulary;
  x.width = 4 * hidden;
  x.norm_vectors = 2;
  x.query_biases = x.output_bias = x.network_biases = x.dropouts = x.tied = true;
  x.position_rows = x.positions = sequence;
  return x;
}

parameter_counts parameter_counts_of(const language_model& m) {
  const double h = m.hidden, norm = m.norm_vectors * h, norms = m.norms * norm;
  parameter_counts x;
  x.attention = attention_matrices(m) + norms;
  if (m.latent.key_value_rank > 0)
    x.attention += m.latent.query_rank + m.latent.key_value_rank; // their norms
  if (m.indexer.heads > 0)
    x.attention += indexer_matrices(m) + 2.0 * m.indexer.head_size; // a layer norm of the keys
  if (m.query_key_norms == query_key_norm::of_a_head)
    x.attention += 2.0 * m.head_size;
  else if (m.query_key_norms == query_key_norm::of_all_heads)
    x.attention += m.head_size * (m.heads + static_cast<double>(m.key_value_heads));
  if (m.query_biases)
    x.attention += m.head_size * (m.heads + 2.0 * m.key_value_heads);
  if (m.output_bias)
    x.attention += h;
  if (m.sinks)
    x.attention += m.heads;
  if (auto& l = m.linear; l.value_heads > 0) // the convolution; a decay and a step a head; a norm of the output's heads
    x.linear = linear_matrices(m) + norms + l.convolution * (2 * l.keys() + l.values()) + 2.0 * l.value_heads
               + l.value_size;
  auto network = [&](uint32_t width) {
    return network_matrices(m, width) + (m.network_biases ? (m.gated ? 2.0 : 1.0) * width + h : 0);
  };
  x.dense = network(m.width);
  if (auto& e = m.experts; e.count > 0) {
    x.one_expert = network(e.width);
    x.shared = e.shared_width == 0 ? 0 : network(e.shared_width);
    x.router = (h + (e.router_bias ? 1 : 0) + (e.corrected ? 1 : 0)) * e.count + (e.shared_gate ? h : 0);
  }
  x.embedding = h * m.vocabulary + h * m.position_rows + (m.embedding_norm ? norm : 0);
  x.output = norm + (m.tied ? 0 : h * m.vocabulary) + (m.logit_bias ? m.vocabulary : 0);
  x.multi_token = m.multi_token * (2 * h * h + 3 * norm);
  ensure(x.attention > 0 && x.embedding > 0 && x.output >= 0, "attention and embeddings have parameters");
  return x;
}

double parameters_of(const language_model& m) {
  const auto x = parameter_counts_of(m);
  const layer_counts layers{m};
  return layers.full * x.attention + layers.linear * x.linear
         + layers.sparse * (x.router + x.shared + x.one_expert * m.experts.count) + layers.dense * x.dense + x.embedding
         + x.output;
}

double active_parameters_of(const language_model& m) {
  const auto x = parameter_counts_of(m);
  return parameters_of(m)
         - layer_counts{m}.sparse * x.one_expert * (m.experts.count - std::min(m.experts.count, m.experts.chosen));
}

double parameters_of_layer(const language_model& m, uint32_t layer) {
  const auto x = parameter_counts_of(m);
  return (m.linear.value_heads > 0 && m.is_windowed(layer) ? x.linear : x.attention)
         + (m.has_experts(layer) ? x.router + x.shared + x.one_expert * m.experts.count : x.dense);
}

double flops_of(const language_model& m, double global_batch, bool whole_scores) {
  const double s = m.sequence, windowed = m.windowed_layers_in(0, m.layers);
  const auto scores = (m.layers - windowed + m.multi_token) * attended(m, false, whole_scores)
                      + windowed * attended(m, true, whole_scores);
  return 6 * global_batch * s * (active_matrices(m) + scores);
}

caf::error problem_of(const language_model& m) {
  if (m.hidden == 0 || m.layers == 0 || m.heads == 0 || m.head_size == 0 || m.vocabulary == 0 || m.sequence == 0)
    return invalid("a model's hidden size, layers, heads, vocabulary and sequence are at least 1");
  if (m.key_value_heads == 0 || m.heads % m.key_value_heads != 0)
    return invalid(fmt::format("{} heads of queries do not divide among {} of keys and values", m.heads,
                               m.key_value_heads));
  if (m.experts.count > 0 && (m.experts.chosen == 0 || m.experts.chosen > m.experts.count))
    return invalid(fmt::format("{} experts cannot be chosen of {}", m.experts.chosen, m.experts.count));
  if (m.experts.count > 0 && m.experts.width == 0)
    return invalid("an expert's width is at least 1");
  if (m.experts.count > 0 && (m.experts.imbalance < 1 || m.experts.imbalance > m.experts.count))
    return invalid(fmt::format("an imbalance of {} cannot be: the fullest of {} experts has 1 to {} times the mean",
                               m.experts.imbalance, m.experts.count, m.experts.count));
  if (m.experts.dense_first > m.layers)
    return invalid(fmt::format("{} dense layers are more than all {}", m.experts.dense_first, m.layers));
  if (m.experts.every == 0)
    return invalid("experts are in every layer, or in every second, third, ...");
  if (auto& x = m.linear; x.value_heads > 0 && (x.key_heads == 0 || x.value_heads % x.key_heads != 0))
    return invalid(fmt::format("{} heads of values do not divide among {} of keys in linear attention", x.value_heads,
                               x.key_heads));
  return m.has_dense_layers() && m.width == 0 ? invalid("a feed-forward network's width is at least 1") : caf::error{};
}

} // namespace ringmaster::training
