#pragma once

#include <caf/error.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
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

/// Attention by a state of fixed size in place of keys: gated delta nets (Yang et al. 2024), as Qwen3-Next has them.
struct linear_attention {
  uint32_t key_heads = 0;
  uint32_t value_heads = 0;              ///< 0: the model has no such layers.
  uint32_t key_size = 0, value_size = 0; ///< Elements of a head.
  uint32_t convolution = 0;              ///< Positions that the convolution before it takes.

  double keys() const { return static_cast<double>(key_heads) * key_size; }
  double values() const { return static_cast<double>(value_heads) * value_size; }
  bool operator==(const linear_attention&) const = default;
};

/// Small heads that score all keys of a query, of which the best `window` are then attended to (DeepSeek-V3.2, 2025).
struct key_indexer {
  uint32_t heads = 0; ///< 0: the model has none.
  uint32_t head_size = 0;

  double size() const { return static_cast<double>(heads) * head_size; }
  bool operator==(const key_indexer&) const = default;
};

/// A layer's feed-forward networks of which each position takes some (mixture of experts, Shazeer et al. 2017).
struct expert_layers {
  uint32_t count = 0;  ///< Of a layer; 0: the model has none.
  uint32_t chosen = 0; ///< A position.
  uint32_t width = 0;
  uint32_t shared_width = 0;  ///< Of the networks that every position takes beside these, together; 0: none.
  bool shared_gate = false;   ///< A product with one vector weighs them (Qwen1.5-MoE).
  uint32_t dense_first = 0;   ///< Layers at the start that have none.
  uint32_t every = 1;         ///< Of the others, the last of each `every` has them (Llama 4 Maverick: 2).
  double capacity = 0;        ///< What an expert takes at most, of the mean: the rest is dropped. 0: dropless.
  uint32_t groups = 0;        ///< Of neighbouring experts, where a position's choices lie in some only; 0: anywhere.
  uint32_t groups_chosen = 0; ///< The number of them (DeepSeek-V2 2024, 2.2.2).
  bool router_bias = false;   ///< Of the router's product.
  bool corrected = false;     ///< A score of each expert has a bias, for their balance (DeepSeek-V3 2024, 2.1.2).
  double imbalance = 1;       ///< What the rank with the most positions is sent, of the mean.

  /// What that rank computes, relative to the mean, if `ranks` share the experts: at most what all of them are sent.
  double most(uint32_t ranks) const {
    return std::min<double>(capacity > 0 ? std::min(capacity, imbalance) : imbalance, ranks);
  }
  bool operator==(const expert_layers&) const = default;
};

/// Norms of queries and keys: none, one for all heads of each (Qwen3), or one over all heads' elements (OLMo 2).
enum class query_key_norm : uint8_t { none, of_a_head, of_all_heads };

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
  linear_attention linear{};
  key_indexer indexer{};

  uint32_t window = 0;       ///< Positions that layers with a window look back at; 0: no layer has one.
  bool chunked = false;      ///< Windows are chunks of the sequence, side by side (Llama 4).
  uint32_t windows_from = 0; ///< The first layer with a window, or with linear attention.
  uint32_t full_every = 2;   ///< The last of each `full_every` layers has neither; 0: all from windows_from on have it.

  uint32_t width = 0; ///< Of a dense layer's feed-forward network.
  bool gated = false; ///< Two products up, one of them the other's gate (SwiGLU, Shazeer 2020).
  expert_layers experts{};
  uint32_t multi_token = 0; ///< Modules that predict further tokens, a layer each (DeepSeek-V3 2024).

  uint32_t norms = 2;        ///< Of a layer, over the hidden size.
  uint32_t norm_vectors = 1; ///< Parameters of such a norm by the hidden size: RMS 1, with a bias 2, or 0 (OLMo).
  query_key_norm query_key_norms = query_key_norm::none;
  bool query_biases = false;   ///< Of the products that make queries, keys and values.
  bool output_bias = false;    ///< Of the product behind attention.
  bool network_biases = false; ///< Of the feed-forward networks' products.
  bool logit_bias = false;
  bool sinks = false;              ///< A score a head that no key has (gpt-oss).
  bool unfused_activation = false; ///< An activation function for which there is no fused kernel (gpt-oss).
  bool gated_attention = false;    ///< A product more, as large as that of the queries, gates its output (Qwen3-Next).
  bool dropouts = false;           ///< Behind attention and networks, as GPT-3.
  bool parallel = false;           ///< Attention and network have the same input (Wang, Komatsuzaki 2021).
  bool embedding_norm = false;
  uint32_t position_rows = 0; ///< Of an embedding of positions; 0: positions are rotary, or biases of scores.
  bool tied = false;          ///< Logits by the embedding's own weights.
  bool text_only = false;     ///< The file has a part that sees or hears, too, which is left out.

  /// Of a head, a position; latent ones made whole.
  uint32_t key_and_value_size() const {
    return latent.key_value_rank > 0 ? head_size + latent.rotary_size + latent.value_size : 2 * head_size;
  }
  /// Heads of keys and values on each of the ranks that share a layer: at least one is whole.
  double key_value_heads_on(uint32_t tensor) const {
    return std::max(1.0, static_cast<double>(key_value_heads) / tensor);
  }
  bool has_experts(uint32_t layer) const {
    return experts.count > 0 && layer >= experts.dense_first && (layer + 1) % experts.every == 0;
  }
  /// Whether some layers have none.
  bool has_dense_layers() const { return expert_layers_in(0, layers) < layers; }
  /// Whether some layers have a window that is shorter than a sample, or linear attention.
  bool has_windows() const { return linear.value_heads > 0 || (window > 0 && window < sequence); }
  /// Whether this one has.
  bool is_windowed(uint32_t layer) const {
    return has_windows() && layer >= windows_from && (full_every == 0 || (layer + 1) % full_every != 0);
  }
  /// Of the layers from `begin` to before `end`, those that have experts; a window or linear attention; both.
  uint32_t expert_layers_in(uint32_t begin, uint32_t end) const {
    return experts.count == 0 ? 0 : last_of_each(experts.every, std::max(begin, experts.dense_first), end);
  }
  uint32_t windowed_layers_in(uint32_t begin, uint32_t end) const {
    const auto from = std::max(begin, windows_from);
    return has_windows() && end > from ? end - from - last_of_each(full_every, from, end) : 0;
  }
  uint32_t windowed_expert_layers_in(uint32_t begin, uint32_t end) const {
    if (experts.count == 0 || !has_windows())
      return 0;
    const auto from = std::max({begin, windows_from, experts.dense_first});
    return last_of_each(experts.every, from, end) - last_of_each(std::lcm(full_every, experts.every), from, end);
  }
  /// Keys of a query, the mean, in a layer with a window or one without.
  double keys_seen(bool windowed) const {
    const double s = sequence, w = window;
    return !windowed ? s / 2 : chunked ? w / 2 : w - w * w / (2 * s);
  }
  bool operator==(const language_model&) const = default;

private:
  /// Layers in [begin, end) that are the last of `each`, counted from layer 0.
  static uint32_t last_of_each(uint32_t each, uint32_t begin, uint32_t end) {
    return each == 0 || end <= begin ? 0 : end / each - begin / each;
  }
};

/// A GPT of the usual shape (Radford et al. 2019): heads share the hidden size, the MLP is four times as wide, and
/// positions have an embedding of `sequence` rows.
language_model gpt_shape(std::string name, uint32_t hidden, uint32_t heads, uint32_t layers, uint32_t sequence = 2048,
                         uint32_t vocabulary = 50257);

/// Parameters of its parts.
struct parameter_counts {
  double attention = 0; ///< Of a layer, with its norms.
  double linear = 0;    ///< The same of a layer with linear attention.
  double dense = 0;     ///< Of a layer's feed-forward network.
  double one_expert = 0;
  double shared = 0;      ///< Of a layer with experts, the networks that every position takes.
  double router = 0;      ///< Of a layer with experts.
  double embedding = 0;   ///< Of tokens and positions.
  double output = 0;      ///< Own output embedding, and the last norm.
  double multi_token = 0; ///< Of the modules, beside their layers.
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

/// Whether there can be such a model. Errors: invalid_argument, with the sizes that do not go together.
caf::error problem_of(const language_model& m);

} // namespace ringmaster::training
