#pragma once

#include "planner/models/language_model.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// A member of a configuration file that says whether products have biases. Without a member it is as `absent`.
struct bias_rule {
  std::string_view member{};
  bool absent = false;
};

/// Which layers of a family have a window, where "layer_types" does not say it.
enum class windowed_layers : uint8_t {
  none,
  all,
  upper,    ///< From max_window_layers on, if use_sliding_window is true.
  periodic, ///< All but the last of each `period`.
};

/// The layers with a window, and the members that say its size and the period.
struct window_rule {
  windowed_layers layers = windowed_layers::none;
  std::string_view member = "sliding_window"; ///< Of the size.
  uint32_t absent = 0;                        ///< The size where the member is missing; 0: then there is none.
  uint32_t period = 2;
  std::string_view period_member{};
  bool chunked = false;
};

/// The members that say how many experts there are (empty: the family has none), an expert's width, and the width of
/// what every position takes; without the last, n_shared_experts of an expert's width, or the family's `shared`.
struct expert_members {
  std::string_view count{}, width{}, shared_width{};
};

/// What a family's parameters and attention are, by "model_type" of Hugging Face's transformers library, where its
/// files do not say it. Its members are named as in `model_reader`.
struct model_family {
  std::string_view name;

  uint32_t norms = 2, norm_vectors = 1;
  query_key_norm query_key_norms = query_key_norm::none;
  std::string_view norms_queries{}; ///< The member that says whether there are such norms; empty: there are.
  bias_rule attention{};            ///< Of queries, keys and values.
  bool output_as_attention = true;  ///< The product behind attention has a bias where those have.
  bias_rule network{};
  bias_rule logits{};
  bool gated = true, parallel = false, tied = false, embedding_norm = false;
  bool learned_positions = false, dropouts = false;
  uint32_t rows_beside = 0; ///< Of the embedding of positions, that no position has (OPT).
  uint32_t positions = 0;   ///< max_position_embeddings, where it is missing; 0: nothing is known.
  uint32_t vocabulary = 0, heads = 0, key_value_heads = 0; ///< The same of these; 0: they must be there.
  uint32_t head_size = 0; ///< head_dim, where it is missing; 0: the hidden size divided among the heads.

  expert_members experts{};
  uint32_t shared = 0;
  bool shared_gate = false, corrected = false, router_bias = false;

  bool latent = false, gated_attention = false, linear = false, sinks = false;
  window_rule windows{};
};

std::span<const model_family> model_families();
/// By its own name, or that of another one whose files are read as its; null: it is not known.
const model_family* model_family_of(std::string_view name);

std::vector<std::string> model_family_names();
/// The first names, the number of the others and where they are: "llama, mistral, ... and 43 more, see PAGE".
std::string known_families_text();
/// invalid_argument: no family has this name; with the nearest one, if there is one.
caf::error unknown_model_family(const std::string& name);

} // namespace ringmaster::training
