// By the modelling code of transformers 4 and 5, class by class: which parameters a layer has, and what its
// configuration class takes where a file is silent.
#include "planner/models/model_families.hpp"

#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace ringmaster::training {

namespace {

// What families differ in, each as a function of a family.
namespace parts {

template <auto Member>
constexpr auto set(auto value) {
  return [value](model_family& x) { x.*Member = value; };
}

using of = model_family;
constexpr auto ungated = set<&of::gated>(false);
constexpr auto plain_output = set<&of::output_as_attention>(false);
constexpr auto norms_of_heads = set<&of::query_key_norms>(query_key_norm::of_a_head);
constexpr auto norms_of_all_heads = set<&of::query_key_norms>(query_key_norm::of_all_heads);
constexpr auto parallel = set<&of::parallel>(true);
constexpr auto tied = set<&of::tied>(true);
constexpr auto embedding_norm = set<&of::embedding_norm>(true);
constexpr auto learned_positions = set<&of::learned_positions>(true);
constexpr auto dropouts = set<&of::dropouts>(true);
constexpr auto shared_gate = set<&of::shared_gate>(true);
constexpr auto corrected = set<&of::corrected>(true);
constexpr auto router_bias = set<&of::router_bias>(true);
constexpr auto latent = set<&of::latent>(true);
constexpr auto gated_attention = set<&of::gated_attention>(true);
constexpr auto linear = set<&of::linear>(true);
constexpr auto sinks = set<&of::sinks>(true);

constexpr auto norms = [](uint32_t x) { return set<&of::norms>(x); };
constexpr auto norm_vectors = [](uint32_t x) { return set<&of::norm_vectors>(x); };
constexpr auto rows_beside = [](uint32_t x) { return set<&of::rows_beside>(x); };
constexpr auto vocabulary = [](uint32_t x) { return set<&of::vocabulary>(x); };
constexpr auto heads = [](uint32_t x) { return set<&of::heads>(x); };
constexpr auto key_value_heads = [](uint32_t x) { return set<&of::key_value_heads>(x); };
constexpr auto head_size = [](uint32_t x) { return set<&of::head_size>(x); };
constexpr auto shared = [](uint32_t x) { return set<&of::shared>(x); };
constexpr auto norms_queries = [](std::string_view member) { return set<&of::norms_queries>(member); };
constexpr auto attention = [](std::string_view member, bool absent = false) {
  return set<&of::attention>(bias_rule{member, absent});
};
constexpr auto network = [](std::string_view member, bool absent = false) {
  return set<&of::network>(bias_rule{member, absent});
};
constexpr auto logits = [](std::string_view member, bool absent = false) {
  return set<&of::logits>(bias_rule{member, absent});
};
constexpr auto experts = [](std::string_view count, std::string_view width, std::string_view shared_width = {}) {
  return set<&of::experts>(expert_members{count, width, shared_width});
};
/// All but the last of each `period` layers.
constexpr auto every(uint32_t period, uint32_t absent = 0, std::string_view period_member = {},
                     std::string_view member = "sliding_window", bool chunked = false) {
  return set<&of::windows>(window_rule{windowed_layers::periodic, member, absent, period, period_member, chunked});
}
constexpr auto everywhere_by = [](std::string_view member) {
  return set<&of::windows>(window_rule{windowed_layers::all, member});
};

constexpr auto attention_bias = attention("attention_bias");
constexpr auto biased_attention = attention({}, true);
constexpr auto biased_network = network({}, true);
constexpr auto biased_logits = logits({}, true);
constexpr auto local_experts = experts("num_local_experts", "intermediate_size");
constexpr auto routed_experts = experts("n_routed_experts", "moe_intermediate_size");
constexpr auto experts_of_qwen = experts("num_experts", "moe_intermediate_size");
constexpr auto everywhere = everywhere_by("sliding_window");
constexpr auto above = set<&of::windows>(window_rule{windowed_layers::upper});

template <class... Parts>
constexpr model_family family(std::string_view name, uint32_t positions, Parts... parts) {
  model_family result{.name = name, .positions = positions};
  (parts(result), ...);
  return result;
}

} // namespace parts

constexpr auto families = [] {
  using namespace parts;
  return std::array{
    family("llama", 2048, attention_bias, network("mlp_bias")),
    family("mistral", 131072, everywhere),
    family("qwen2", 32768, biased_attention, plain_output, above),
    family("qwen3", 32768, norms_of_heads, attention_bias, head_size(128), above),
    family("qwen2_moe", 32768, attention("qkv_bias", true), plain_output,
           experts("num_experts", "moe_intermediate_size", "shared_expert_intermediate_size"), shared_gate, above),
    family("qwen3_moe", 32768, norms_of_heads, attention_bias, experts_of_qwen, above),
    family("qwen3_next", 32768, norms_of_heads, attention_bias, head_size(256),
           experts("num_experts", "moe_intermediate_size", "shared_expert_intermediate_size"), shared_gate,
           gated_attention, linear, every(4, 0, "full_attention_interval")),
    family("qwen3_5", 32768, norms_of_heads, attention_bias, head_size(256), gated_attention, linear,
           every(4, 0, "full_attention_interval")),
    family("mixtral", 131072, local_experts, everywhere),
    family("gpt_oss", 131072, attention("attention_bias", true), biased_network, head_size(64), local_experts,
           router_bias, sinks, every(2)),
    family("deepseek", 2048, attention_bias, routed_experts),
    family("deepseek_v2", 2048, routed_experts, latent),
    family("deepseek_v3", 4096, routed_experts, corrected, latent),
    family("deepseek_v32", 4096, routed_experts, corrected, latent, everywhere_by("index_topk")),
    family("glm", 131072, attention_bias, plain_output, head_size(128)),
    family("glm4", 131072, norms(4), attention_bias, plain_output, head_size(128)),
    family("chatglm", 2048, attention("add_qkv_bias", true), plain_output),
    family("glm4_moe", 131072, norms_of_heads, norms_queries("use_qk_norm"), attention_bias, plain_output,
           routed_experts, corrected),
    family("dots1", 2048, norms_of_heads, attention_bias, routed_experts, corrected),
    family("llama4_text", 131072, attention_bias, head_size(128), local_experts, shared(1),
           every(4, 8192, "no_rope_layer_interval", "attention_chunk_size", true)),
    family("gemma", 8192, attention_bias, tied, head_size(256)),
    family("gemma2", 8192, norms(4), attention_bias, tied, head_size(256), every(2, 4096)),
    family("gemma3_text", 131072, norms(4), norms_of_heads, attention_bias, tied, vocabulary(262208), heads(8),
           key_value_heads(4), head_size(256), every(6, 4096, "sliding_window_pattern")),
    family("phi", 2048, norms(1), norm_vectors(2), biased_attention, biased_network, biased_logits, ungated, parallel),
    family("phi3", 4096, everywhere),
    family("phimoe", 131072, norm_vectors(2), attention_bias, logits("lm_head_bias"), local_experts, everywhere),
    family("falcon", 2048, norm_vectors(2), attention("bias"), network("bias"), ungated, tied),
    family("starcoder2", 4096, norm_vectors(2), attention("use_bias", true), network("use_bias", true), ungated, tied,
           everywhere),
    family("gpt2", 1024, norm_vectors(2), biased_attention, biased_network, ungated, tied, learned_positions, dropouts),
    family("gpt_bigcode", 1024, norm_vectors(2), biased_attention, biased_network, ungated, tied, learned_positions,
           dropouts),
    family("gpt_neox", 2048, norm_vectors(2), attention("attention_bias", true), biased_network, ungated, parallel),
    family("gptj", 2048, norms(1), norm_vectors(2), biased_network, biased_logits, ungated, parallel),
    family("opt", 2048, norm_vectors(2), attention("enable_bias", true), network("enable_bias", true), ungated, tied,
           learned_positions, dropouts, rows_beside(2)),
    family("bloom", 0, norm_vectors(2), biased_attention, biased_network, ungated, tied, embedding_norm, dropouts),
    family("mpt", 2048, ungated, tied),
    family("nemotron", 4096, norm_vectors(2), attention_bias, network("mlp_bias"), ungated),
    family("arcee", 4096, attention_bias, network("mlp_bias"), ungated),
    family("stablelm", 4096, norm_vectors(2), attention("use_qkv_bias"), plain_output),
    family("cohere", 8192, norms(1), norms_of_all_heads, norms_queries("use_qk_norm"), attention_bias, parallel, tied),
    family("cohere2", 8192, norms(1), attention_bias, parallel, tied, every(4, 4096, "sliding_window_pattern")),
    family("olmo", 2048, norm_vectors(0), attention_bias),
    family("olmo2", 2048, norms_of_all_heads, attention_bias),
    family("olmo3", 2048, norms_of_all_heads, attention_bias, every(4, 4096)),
    family("olmoe", 4096, norms_of_all_heads, attention_bias, experts("num_experts", "intermediate_size")),
    family("exaone4", 2048, norms_of_heads, every(4)),
    family("granite", 2048, attention_bias, network("mlp_bias")),
    family("granitemoe", 2048, attention_bias, local_experts),
    family("granitemoeshared", 2048, attention_bias,
           experts("num_local_experts", "intermediate_size", "shared_intermediate_size")),
    family("minimax_m2", 196608, norms_of_all_heads, norms_queries("use_qk_norm"), local_experts, corrected),
    family("ernie4_5", 131072, attention("use_bias"), network("use_bias"), tied),
    family("ernie4_5_moe", 131072, attention("use_bias"), network("use_bias"), tied,
           experts("moe_num_experts", "moe_intermediate_size"), corrected),
    family("internlm2", 2048, attention("bias", true)),
    family("seed_oss", 524288, attention("attention_bias", true), plain_output),
  };
}();

/// Families whose files have the members of another one's, and models of several parts by that of their text.
struct same_files {
  std::string_view family;
  std::array<std::string_view, 4> names;
};
constexpr same_files read_alike[] = {
  {"deepseek_v3", {"kimi_k2", "kimi_k25", "kimi_vl"}},
  {"deepseek_v32", {"glm_moe_dsa"}},
  {"gemma3_text", {"gemma3"}},
  {"llama4_text", {"llama4"}},
  {"llama", {"mllama_text_model", "smollm3", "baichuan", "aquila"}},
  {"mistral", {"ministral", "ministral3", "mistral3"}},
  {"phi3", {"phi4mm", "phi3_v"}},
  {"falcon", {"RefinedWebModel", "RefinedWeb"}},
  {"glm4", {"glm4v", "glm4v_text"}},
  {"glm4_moe", {"glm4v_moe", "glm4v_moe_text"}},
  {"qwen2", {"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"}},
  {"qwen3", {"qwen3_vl", "qwen3_vl_text"}},
  {"qwen3_moe", {"qwen3_vl_moe", "qwen3_vl_moe_text"}},
  {"qwen3_5", {"qwen3_5_text"}},
  {"qwen3_next", {"qwen3_5_moe", "qwen3_5_moe_text"}},
};

} // namespace

std::span<const model_family> model_families() {
  return families;
}

const model_family* model_family_of(std::string_view name) {
  for (auto& [family, names] : read_alike)
    if (!name.empty() && std::ranges::count(names, name) > 0)
      name = family;
  auto found = std::ranges::find(families, name, &model_family::name);
  return found == std::end(families) ? nullptr : found;
}

std::vector<std::string> model_family_names() {
  std::vector<std::string> result;
  for (auto& x : families)
    result.emplace_back(x.name);
  return result;
}

std::string known_families_text() {
  constexpr size_t shown = 12;
  return shortened_list(model_family_names(), shown) + ", see docs/cost_models.md";
}

caf::error unknown_model_family(const std::string& name) {
  const auto near = nearest_word(name, model_family_names());
  return invalid(fmt::format("there is no family of models \"{}\"{}; there are: {}", name,
                             near.empty() ? "" : fmt::format(" (did you mean {}?)", near), known_families_text()));
}

} // namespace ringmaster::training
