#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace ringmaster::training {

/// Queries and keys from small common vectors (multi-head latent attention, DeepSeek-V2 2024). Sizes a position.
struct latent_attention {
  uint32_t query_rank = 0;
  uint32_t key_value_rank = 0; ///< 0: the model has heads of the usual kind.
  uint32_t rotary_size = 0;    ///< Of a head's queries and keys, beside head_size, with rotary positions.
  uint32_t value_size = 0;     ///< Of a head's values.

  bool operator==(const latent_attention&) const = default;
};

/// A layer's feed-forward networks of which each position takes some (mixture of experts, Shazeer et al. 2017).
struct expert_layers {
  uint32_t count = 0;  ///< Of a layer; 0: the model has none.
  uint32_t chosen = 0; ///< A position.
  uint32_t shared = 0; ///< More, which every position takes.
  uint32_t width = 0;
  uint32_t dense_first = 0;   ///< Layers at the begin that have none.
  double capacity = 0;        ///< What an expert takes at most, of the mean: the rest is dropped. 0: dropless.
  uint32_t groups = 0;        ///< Of neighbouring experts, where a position's choices lie in some only; 0: anywhere.
  uint32_t groups_chosen = 0; ///< So many of them (DeepSeek-V2 2024, 2.2.2).
  bool corrected = false;     ///< A score of each expert has a bias, for their balance (DeepSeek-V3 2024, 2.1.2).
  double imbalance = 1;       ///< What the rank with the most positions is sent, of the mean.

  /// What that rank computes, of the mean, where so many share the experts: at most what all of them are sent.
  double most(uint32_t ranks) const {
    return std::min<double>(capacity > 0 ? std::min(capacity, imbalance) : imbalance, ranks);
  }
  bool operator==(const expert_layers&) const = default;
};

/// A decoder-only transformer. Sizes in elements.
struct language_model {
  std::string name = "own";
  uint32_t hidden = 0;
  uint32_t layers = 0;
  uint32_t sequence = 2048; ///< Positions of a sample.
  uint32_t positions = 0;   ///< That it was made for, as its maker says; 0: nothing is said, any will do.
  uint32_t vocabulary = 50257;

  uint32_t heads = 0;
  uint32_t key_value_heads = 0; ///< Fewer than heads: grouped queries (Ainslie et al. 2023).
  uint32_t head_size = 0;
  latent_attention latent{};
  uint32_t window = 0; ///< Positions that every other layer looks back at; 0: all layers at all.

  uint32_t width = 0; ///< Of a dense layer's feed-forward network.
  bool gated = false; ///< Two products up, one of them the other's gate (SwiGLU, Shazeer 2020).
  expert_layers experts{};
  uint32_t multi_token = 0; ///< Modules that predict further tokens, a layer each (DeepSeek-V3 2024).

  bool layer_norms = false;       ///< With mean and bias, dropouts and biases everywhere, as GPT-3; else RMS norms.
  bool query_key_norms = false;   ///< Of a head (Qwen3).
  bool biases = false;            ///< Of products, and a sink a head (gpt-oss); layer_norms has them anyway.
  bool query_biases = false;      ///< Of the products that make queries, keys and values, and no others (Qwen2).
  bool learned_positions = false; ///< An embedding of them.
  bool tied = false;              ///< Logits by the embedding's own weights.

  /// Of a head, a position; latent ones made whole.
  uint32_t key_and_value_size() const {
    return latent.key_value_rank > 0 ? head_size + latent.rotary_size + latent.value_size : 2 * head_size;
  }
  /// Heads of keys and values on each of the ranks that share a layer: at least one is whole.
  double key_value_heads_on(uint32_t tensor) const {
    return std::max(1.0, static_cast<double>(key_value_heads) / tensor);
  }
  bool has_experts(uint32_t layer) const { return experts.count > 0 && layer >= experts.dense_first; }
  bool is_windowed(uint32_t layer) const { return window > 0 && window < sequence && layer % 2 == 0; }
  bool operator==(const language_model&) const = default;
};

/// A GPT of the usual shape (Radford et al. 2019): heads share the hidden size, the MLP is four times as wide.
language_model gpt_shape(std::string name, uint32_t hidden, uint32_t heads, uint32_t layers, uint32_t sequence = 2048,
                         uint32_t vocabulary = 50257);

/// Parameters of its parts.
struct parameter_counts {
  double attention = 0;   ///< Of a layer, with its norms.
  double dense = 0;       ///< Of a layer's feed-forward network.
  double one_expert = 0;  ///< Each of the chosen or shared.
  double router = 0;      ///< Of a layer with experts.
  double embedding = 0;   ///< Of tokens and positions.
  double output = 0;      ///< Own output embedding, and the last norm.
  double multi_token = 0; ///< Of the modules, beside their layers.

  double experts_layer(const language_model& m) const {
    return attention + router + one_expert * (m.experts.count + m.experts.shared);
  }
};
parameter_counts parameter_counts_of(const language_model& m);

/// All of them, without modules that predict further tokens, as they are published.
double parameters_of(const language_model& m);
/// Those that a position meets.
double active_parameters_of(const language_model& m);
/// Of a layer.
double parameters_of_layer(const language_model& m, uint32_t layer);

/// Operations of a step without recomputation, forward and backward, products only; `whole_scores` counts what a
/// causal mask leaves out, too (Narayanan et al. 2021), else the half that is computed.
double flops_of(const language_model& m, double global_batch, bool whole_scores = false);

/// Why it cannot be: a sentence, empty if it can.
std::string problem_of(const language_model& m);

} // namespace ringmaster::training
