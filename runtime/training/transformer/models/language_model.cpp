#include "runtime/training/transformer/models/language_model.hpp"

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
  return h * size * (2 * a + 2.0 * m.key_value_heads);
}

double network_matrices(const language_model& m, uint32_t width) {
  return (m.gated ? 3.0 : 2.0) * m.hidden * width;
}

double layers_with_experts(const language_model& m) {
  return m.experts.count == 0 ? 0 : m.layers - std::min(m.layers, m.experts.dense_first);
}

/// Of a position's products with weights.
double active_matrices(const language_model& m) {
  const auto sparse = layers_with_experts(m), dense = m.layers - sparse;
  const auto kept = m.experts.capacity > 0 ? std::min(m.experts.capacity, 1.0) : 1; // the rest is dropped for certain
  const auto taken = network_matrices(m, m.experts.width) * (m.experts.chosen * kept + m.experts.shared)
                     + static_cast<double>(m.hidden) * m.experts.count;
  const auto modules = m.multi_token
                       * (2.0 * m.hidden * m.hidden + attention_matrices(m)
                          + (sparse > 0 ? taken : network_matrices(m, m.width)));
  return m.layers * attention_matrices(m) + sparse * taken + dense * network_matrices(m, m.width) + modules
         + (1.0 + m.multi_token) * m.hidden * m.vocabulary;
}

/// Pairs of a query and a key in a layer, of a sample.
double pairs(double sequence, double looked_back, bool whole_scores) {
  if (whole_scores)
    return sequence * sequence;
  return looked_back >= sequence ? sequence * sequence / 2 : sequence * looked_back - looked_back * looked_back / 2;
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
  x.layer_norms = x.learned_positions = x.tied = true;
  return x;
}

parameter_counts parameter_counts_of(const language_model& m) {
  const double h = m.hidden, norm = m.layer_norms ? 2 * h : h;
  const bool biases = m.biases || m.layer_norms;
  parameter_counts x;
  x.attention = attention_matrices(m) + 2 * norm;
  if (m.latent.key_value_rank > 0)
    x.attention += m.latent.query_rank + m.latent.key_value_rank; // their norms
  if (m.query_key_norms)
    x.attention += 2.0 * m.head_size;
  if (biases || m.query_biases)
    x.attention += m.head_size * (m.heads + 2.0 * m.key_value_heads);
  if (biases)
    x.attention += h;
  if (m.biases)
    x.attention += m.heads; // sinks
  auto network = [&](uint32_t width) {
    return network_matrices(m, width) + (biases ? (m.gated ? 2.0 : 1.0) * width + h : 0);
  };
  x.dense = network(m.width);
  if (m.experts.count > 0) {
    x.one_expert = network(m.experts.width);
    x.router = (h + (m.biases || m.experts.corrected ? 1 : 0)) * m.experts.count;
  }
  x.embedding = h * m.vocabulary + (m.learned_positions ? h * m.sequence : 0);
  x.output = norm + (m.tied ? 0 : h * m.vocabulary);
  x.multi_token = m.multi_token * (2 * h * h + 3 * norm);
  return x;
}

double parameters_of(const language_model& m) {
  const auto x = parameter_counts_of(m);
  const auto sparse = layers_with_experts(m);
  return sparse * x.experts_layer(m) + (m.layers - sparse) * (x.attention + x.dense) + x.embedding + x.output;
}

double active_parameters_of(const language_model& m) {
  const auto x = parameter_counts_of(m);
  return parameters_of(m)
         - layers_with_experts(m) * x.one_expert * (m.experts.count - std::min(m.experts.count, m.experts.chosen));
}

double parameters_of_layer(const language_model& m, uint32_t layer) {
  const auto x = parameter_counts_of(m);
  return m.has_experts(layer) ? x.experts_layer(m) : x.attention + x.dense;
}

double flops_of(const language_model& m, double global_batch, bool whole_scores) {
  const double s = m.sequence, windowed = m.is_windowed(0) ? (m.layers + 1) / 2 : 0;
  const auto seen = (m.layers - windowed + m.multi_token) * pairs(s, s, whole_scores)
                    + windowed * pairs(s, m.window, whole_scores && m.window >= m.sequence);
  return 6 * global_batch * (s * active_matrices(m) + seen * m.heads * m.key_and_value_size());
}

std::string problem_of(const language_model& m) {
  if (m.hidden == 0 || m.layers == 0 || m.heads == 0 || m.head_size == 0 || m.vocabulary == 0 || m.sequence == 0)
    return "a model's hidden size, layers, heads, vocabulary and sequence are at least 1";
  if (m.key_value_heads == 0 || m.heads % m.key_value_heads != 0)
    return fmt::format("{} heads of queries do not divide among {} of keys and values", m.heads, m.key_value_heads);
  if (m.experts.count > 0 && (m.experts.chosen == 0 || m.experts.chosen > m.experts.count))
    return fmt::format("{} experts cannot be chosen of {}", m.experts.chosen, m.experts.count);
  if (m.experts.count > 0 && m.experts.width == 0)
    return "an expert's width is at least 1";
  if (m.experts.count > 0 && (m.experts.imbalance < 1 || m.experts.imbalance > m.experts.count))
    return fmt::format("an imbalance of {} cannot be: the fullest of {} experts has 1 to {} times the mean",
                       m.experts.imbalance, m.experts.count, m.experts.count);
  if (m.experts.dense_first > m.layers)
    return fmt::format("{} dense layers are more than all {}", m.experts.dense_first, m.layers);
  const bool needs_dense = m.experts.count == 0 || m.experts.dense_first > 0;
  return needs_dense && m.width == 0 ? "a feed-forward network's width is at least 1" : "";
}

} // namespace ringmaster::training
