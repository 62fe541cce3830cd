#include "planner/models/known_models.hpp"

#include "messages/errc.hpp"
#include "runtime/text/nearest_word.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace ringmaster::training {

namespace {

/// Grouped queries, gated networks, RMS norms and rotary positions, as Llama 2 (Touvron et al. 2023) and later ones.
/// `positions`: max_position_embeddings of the published configuration.
language_model llama_shape(std::string name, uint32_t hidden, uint32_t heads, uint32_t layers, uint32_t width,
                           uint32_t sequence, uint32_t vocabulary, uint32_t positions) {
  language_model x;
  x.name = std::move(name);
  x.hidden = hidden;
  x.heads = heads;
  x.key_value_heads = 8;
  x.head_size = 128;
  x.layers = layers;
  x.width = width;
  x.gated = true;
  x.sequence = sequence;
  x.vocabulary = vocabulary;
  x.positions = positions;
  return x;
}

/// Qwen3's with experts (Yang et al. 2025, Qwen3 technical report, table 2).
language_model qwen3(std::string name, uint32_t hidden, uint32_t heads, uint32_t layers, uint32_t expert_width) {
  auto x = llama_shape(std::move(name), hidden, heads, layers, 0, 4096, 151936, 40960);
  x.key_value_heads = 4;
  x.query_key_norms = query_key_norm::of_a_head;
  x.experts = {.count = 128, .chosen = 8, .width = expert_width};
  return x;
}

/// Jiang et al. 2024.
language_model mixtral() {
  auto x = llama_shape("mixtral-8x7b", 4096, 32, 32, 0, 4096, 32000, 32768);
  x.experts = {.count = 8, .chosen = 2, .width = 14336};
  return x;
}

/// OpenAI 2025, gpt-oss model card.
language_model gpt_oss() {
  auto x = llama_shape("gpt-oss-120b", 2880, 64, 36, 0, 4096, 201088, 131072);
  x.head_size = 64;
  x.window = 128;
  x.query_biases = x.output_bias = x.network_biases = x.sinks = x.unfused_activation = true;
  x.experts = {.count = 128, .chosen = 4, .width = 2880, .router_bias = true};
  return x;
}

/// Parmar et al. 2024, Nemotron-4 15B; NVIDIA 2024, Nemotron-4 340B: grouped queries, plain networks of squared ReLUs.
language_model nemotron4(std::string name, uint32_t hidden, uint32_t heads, uint32_t head_size, uint32_t layers) {
  auto x = llama_shape(std::move(name), hidden, heads, layers, 4 * hidden, 4096, 256000, 4096);
  x.head_size = head_size;
  x.gated = false;
  return x;
}

/// DeepSeek-AI 2024, DeepSeek-V3 technical report, section 4.2.
language_model deepseek_v3() {
  auto x = llama_shape("deepseek-v3", 7168, 128, 61, 18432, 4096, 129280, 163840);
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

} // namespace

std::span<const language_model> known_models() {
  static const std::array all{// Radford et al. 2019
                              gpt_shape("gpt2-117m", 768, 12, 12, 1024), gpt_shape("gpt2-1.5b", 1600, 25, 48, 1024),
                              // Brown et al. 2020
                              gpt_shape("gpt3-1.3b", 2048, 16, 24), gpt_shape("gpt3-6.7b", 4096, 32, 32),
                              gpt_shape("gpt3-13b", 5120, 40, 40), gpt_shape("gpt3-175b", 12288, 96, 96),
                              // Korthikanti et al. 2022, table 3
                              gpt_shape("megatron-22b", 6144, 64, 48), gpt_shape("megatron-530b", 20480, 128, 105),
                              gpt_shape("megatron-1t", 25600, 160, 128),
                              // Grattafiori et al. 2024, The Llama 3 herd of models, table 3
                              llama_shape("llama3-8b", 4096, 32, 32, 14336, 8192, 128256, 8192),
                              llama_shape("llama3-70b", 8192, 64, 80, 28672, 8192, 128256, 8192),
                              llama_shape("llama3.1-405b", 16384, 128, 126, 53248, 8192, 128256, 131072),
                              qwen3("qwen3-30b-a3b", 2048, 32, 48, 768), qwen3("qwen3-235b-a22b", 4096, 64, 94, 1536),
                              mixtral(), gpt_oss(), deepseek_v3(), nemotron4("nemotron4-15b", 6144, 48, 128, 32),
                              nemotron4("nemotron4-340b", 18432, 96, 192, 96)};
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
  return make_error(errc::invalid_argument,
                    fmt::format("there is no model \"{}\"{}; there are: {}; or a configuration file "
                                "of Hugging Face's (config.json)",
                                name, meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant),
                                fmt::join(names, ", ")));
}

} // namespace ringmaster::training
