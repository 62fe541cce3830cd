#include "planner/models/known_models.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace ringmaster::training {

namespace {

struct gpt_sizes {
  const char* name;
  uint32_t hidden, heads, layers;
  uint32_t sequence = 2048;
};

constexpr gpt_sizes gpt_models[] = {
  // Radford et al. 2019
  {"gpt2-117m", 768, 12, 12, 1024},
  {"gpt2-1.5b", 1600, 25, 48, 1024},
  // Brown et al. 2020
  {"gpt3-1.3b", 2048, 16, 24},
  {"gpt3-6.7b", 4096, 32, 32},
  {"gpt3-13b", 5120, 40, 40},
  {"gpt3-175b", 12288, 96, 96},
  // Korthikanti et al. 2022, table 3
  {"megatron-22b", 6144, 64, 48},
  {"megatron-530b", 20480, 128, 105},
  {"megatron-1t", 25600, 160, 128},
};

/// Grouped queries, gated networks, RMS norms and rotary positions, as in Llama 2 (Touvron et al. 2023) and later.
struct llama_sizes {
  const char* name;
  uint32_t hidden, heads, layers;
  uint32_t width = 0; ///< Of the feed-forward network; 0: all layers have experts.
  uint32_t sequence = 4096;
  uint32_t vocabulary = 0;
  uint32_t positions = 0; ///< max_position_embeddings of the published configuration.
};

language_model llama_shape(const llama_sizes& of) {
  language_model x;
  x.name = of.name;
  x.hidden = of.hidden;
  x.heads = of.heads;
  x.key_value_heads = 8;
  x.head_size = 128;
  x.layers = of.layers;
  x.width = of.width;
  x.gated = true;
  x.sequence = of.sequence;
  x.vocabulary = of.vocabulary;
  x.positions = of.positions;
  return x;
}

/// Grattafiori et al. 2024, The Llama 3 herd of models, table 3
constexpr llama_sizes llama_models[] = {
  // name, hidden, heads, layers, width, sequence, vocabulary, positions
  {"llama3-8b", 4096, 32, 32, 14336, 8192, 128256, 8192},
  {"llama3-70b", 8192, 64, 80, 28672, 8192, 128256, 8192},
  {"llama3.1-405b", 16384, 128, 126, 53248, 8192, 128256, 131072},
};

/// Qwen3 with experts (Yang et al. 2025, Qwen3 technical report, table 2).
language_model qwen3(llama_sizes of, uint32_t expert_width) {
  of.vocabulary = 151936;
  of.positions = 40960;
  auto x = llama_shape(of);
  x.key_value_heads = 4;
  x.query_key_norms = query_key_norm::of_a_head;
  x.experts = {.count = 128, .chosen = 8, .width = expert_width};
  return x;
}

/// Jiang et al. 2024.
language_model mixtral() {
  auto x = llama_shape(
    {.name = "mixtral-8x7b", .hidden = 4096, .heads = 32, .layers = 32, .vocabulary = 32000, .positions = 32768});
  x.experts = {.count = 8, .chosen = 2, .width = 14336};
  return x;
}

/// OpenAI 2025, gpt-oss model card.
language_model gpt_oss() {
  auto x = llama_shape(
    {.name = "gpt-oss-120b", .hidden = 2880, .heads = 64, .layers = 36, .vocabulary = 201088, .positions = 131072});
  x.head_size = 64;
  x.window = 128;
  x.query_biases = x.output_bias = x.network_biases = x.sinks = x.unfused_activation = true;
  x.experts = {.count = 128, .chosen = 4, .width = 2880, .router_bias = true};
  return x;
}

/// Parmar et al. 2024, Nemotron-4 15B; NVIDIA 2024, Nemotron-4 340B: grouped queries, plain networks of squared ReLUs.
language_model nemotron4(llama_sizes of, uint32_t head_size) {
  of.width = 4 * of.hidden;
  of.vocabulary = 256000;
  of.positions = 4096;
  auto x = llama_shape(of);
  x.head_size = head_size;
  x.gated = false;
  return x;
}

/// DeepSeek-AI 2024, DeepSeek-V3 technical report, section 4.2.
language_model deepseek_v3() {
  auto x = llama_shape({"deepseek-v3", 7168, 128, 61, 18432, 4096, 129280, 163840});
  x.key_value_heads = 128;
  x.latent = {.query_rank = 1536, .key_value_rank = 512, .rotary_size = 64, .value_size = 128};
  x.experts = {.count = 256,
               .chosen = 8,
               .width = 2048,
               .shared_width = 2048,
               .dense_first = 3,
               .groups = 8,
               .groups_chosen = 4,
               .corrected = true};
  return x;
}

std::vector<language_model> make_known_models() {
  std::vector<language_model> all;
  for (auto& x : gpt_models)
    all.push_back(gpt_shape(x.name, x.hidden, x.heads, x.layers, x.sequence));
  for (auto& x : llama_models)
    all.push_back(llama_shape(x));
  all.push_back(qwen3({.name = "qwen3-30b-a3b", .hidden = 2048, .heads = 32, .layers = 48}, 768));
  all.push_back(qwen3({.name = "qwen3-235b-a22b", .hidden = 4096, .heads = 64, .layers = 94}, 1536));
  all.push_back(mixtral());
  all.push_back(gpt_oss());
  all.push_back(deepseek_v3());
  all.push_back(nemotron4({.name = "nemotron4-15b", .hidden = 6144, .heads = 48, .layers = 32}, 128));
  all.push_back(nemotron4({.name = "nemotron4-340b", .hidden = 18432, .heads = 96, .layers = 96}, 192));
  for (auto& x : all)
    ensure(!problem_of(x), "a built-in model is possible");
  return all;
}

} // namespace

std::span<const language_model> known_models() {
  static const auto all = make_known_models();
  return all;
}

caf::expected<language_model> model_of(std::string_view name) {
  std::vector<std::string> names;
  for (auto& x : known_models()) {
    if (x.name == name)
      return x;
    names.push_back(x.name);
  }
  const auto meant = nearest_word(name, names);
  return invalid(
    fmt::format("there is no model \"{}\"{}; there are: {}; or a configuration file of Hugging Face's (config.json)",
                name, meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant), fmt::join(names, ", ")));
}

} // namespace ringmaster::training
