// Parameters of published models by their configuration files. Those with a checkpoint at Hugging Face have its own
// count, buffers of expert balance included; of Llama 4 Maverick, MiniMax-M2, DeepSeek-V3.2 and Gemma 3 4B, whose
// checkpoints have further parts, the sum is by hand, tensor by tensor.
#include "planner/models/model_families.hpp"
#include "planner/models/model_file.hpp"

#include "messages/errc.hpp"
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <tuple>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

struct published_model {
  const char* name;
  double parameters;
  std::string config;
};

const std::vector<published_model> model_files{
  {"kimi-k2", 1'026'408'232'448,
   R"({"model_type": "kimi_k2", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size":
        2048, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace":
        1, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 1, "topk_group": 1, "max_position_embeddings":
        131072, "num_attention_heads": 64, "num_key_value_heads": 64, "num_hidden_layers": 61, "vocab_size":
        163840})"},
  {"deepseek-v2-lite", 15'706'484'224,
   R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size":
        1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace":
        1, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
        "max_position_embeddings": 163840, "num_attention_heads": 16, "num_key_value_heads": 16,
        "num_hidden_layers": 27, "vocab_size": 102400})"},
  {"deepseek-v2", 235'741'434'880,
   R"({"model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size":
        1536, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace":
        1, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 8, "topk_group": 3, "topk_method":
        "group_limited_greedy", "max_position_embeddings": 163840, "num_attention_heads": 128,
        "num_key_value_heads": 128, "num_hidden_layers": 60, "vocab_size": 102400})"},
  {"deepseek-v3.2", 671'877'944'064,
   R"({"model_type": "deepseek_v32", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size":
        2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace":
        3, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc", "max_position_embeddings":
        163840, "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": 61,
        "num_nextn_predict_layers": 1, "vocab_size": 129280, "index_head_dim": 128, "index_n_heads": 64,
        "index_topk": 2048})"},
  {"glm-4.5-air", 106'852'251'264,
   R"({"model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size":
        1408, "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace":
        1, "head_dim": 128, "num_attention_heads": 96, "num_key_value_heads": 8, "num_hidden_layers": 46,
        "attention_bias": true, "use_qk_norm": false, "n_group": 1, "topk_group": 1, "num_nextn_predict_layers":
        1, "max_position_embeddings": 131072, "vocab_size": 151552})"},
  {"gemma-2b", 2'506'172'416,
   R"({"model_type": "gemma", "hidden_size": 2048, "head_dim": 256, "intermediate_size": 16384,
        "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 18,
        "num_key_value_heads": 1, "vocab_size": 256000})"},
  {"gemma-7b", 8'537'680'896,
   R"({"model_type": "gemma", "hidden_size": 3072, "head_dim": 256, "intermediate_size": 24576,
        "max_position_embeddings": 8192, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 16, "vocab_size": 256000})"},
  {"gemma-2-2b", 2'614'341'888,
   R"({"model_type": "gemma2", "hidden_size": 2304, "head_dim": 256, "intermediate_size": 9216,
        "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 26,
        "num_key_value_heads": 4, "sliding_window": 4096, "vocab_size": 256000})"},
  {"gemma-2-9b", 9'241'705'984,
   R"({"model_type": "gemma2", "hidden_size": 3584, "head_dim": 256, "intermediate_size": 14336,
        "max_position_embeddings": 8192, "num_attention_heads": 16, "num_hidden_layers": 42,
        "num_key_value_heads": 8, "sliding_window": 4096, "vocab_size": 256000})"},
  {"gemma-3-1b", 999'885'952,
   R"({"model_type": "gemma3_text", "hidden_size": 1152, "head_dim": 256, "intermediate_size": 6912,
        "max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 26,
        "num_key_value_heads": 1, "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144})"},
  {"gemma-3-4b, its text", 3'880'263'168,
   R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
        "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
        "vision_config": {"hidden_size": 1152}})"},
  {"phi-2", 2'779'683'840,
   R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "max_position_embeddings": 2048,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "qk_layernorm": false,
        "tie_word_embeddings": false, "vocab_size": 51200})"},
  {"phi-3-mini", 3'821'079'552,
   R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "sliding_window": 2047,
        "tie_word_embeddings": false, "vocab_size": 32064})"},
  {"phi-3.5-moe", 41'873'153'344,
   R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400, "max_position_embeddings":
        131072, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "num_local_experts": 16, "num_experts_per_tok": 2, "attention_bias": true, "lm_head_bias": true,
        "sliding_window": 131072, "tie_word_embeddings": false, "vocab_size": 32064})"},
  {"qwen1.5-moe-a2.7b", 14'315'784'192,
   R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size":
        1408, "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4,
        "decoder_sparse_step": 1, "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 24,
        "max_position_embeddings": 8192, "vocab_size": 151936})"},
  {"qwen3-next-80b", 79'674'391'296,
   R"({"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120, "moe_intermediate_size":
        512, "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10,
        "decoder_sparse_step": 1, "head_dim": 256, "num_attention_heads": 16, "num_key_value_heads": 2,
        "num_hidden_layers": 48, "full_attention_interval": 4, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4, "vocab_size": 151936, "mlp_only_layers": [], "max_position_embeddings":
        262144})"},
  {"llama-4-scout, its text", 107'769'861'120,
   R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size": 5120,
        "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 48, "num_local_experts": 16,
        "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "vocab_size": 202048, "attention_chunk_size":
        8192, "max_position_embeddings": 10485760}, "vision_config": {}})"},
  {"llama-4-maverick, its text", 400'711'848'960,
   R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size": 5120,
        "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 48, "num_local_experts": 128,
        "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "vocab_size": 202048, "attention_chunk_size":
        8192, "max_position_embeddings": 1048576}})"},
  {"falcon-7b", 6'921'720'704,
   R"({"model_type": "falcon", "alibi": false, "bias": false, "hidden_size": 4544, "multi_query": true,
        "n_head": 71, "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": true, "vocab_size":
        65024, "new_decoder_architecture": false})"},
  {"falcon-40b", 41'303'293'952,
   R"({"model_type": "falcon", "alibi": false, "bias": false, "hidden_size": 8192, "new_decoder_architecture":
        true, "num_attention_heads": 128, "num_hidden_layers": 60, "num_kv_heads": 8, "parallel_attn": true,
        "vocab_size": 65024})"},
  {"starcoder2-3b", 3'030'371'328,
   R"({"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288, "max_position_embeddings":
        16384, "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2, "sliding_window":
        4096, "use_bias": true, "vocab_size": 49152})"},
  {"starcoderbase", 15'517'456'384,
   R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40,
        "n_positions": 8192, "multi_query": true, "vocab_size": 49152})"},
  {"pythia-6.9b", 6'857'302'016,
   R"({"model_type": "gpt_neox", "hidden_size": 4096, "intermediate_size": 16384, "max_position_embeddings":
        2048, "num_attention_heads": 32, "num_hidden_layers": 32, "tie_word_embeddings": false,
        "use_parallel_residual": true, "vocab_size": 50432})"},
  {"gpt-j-6b", 6'050'882'784,
   R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": null, "n_layer": 28, "n_positions":
        2048, "tie_word_embeddings": false, "vocab_size": 50400})"},
  {"opt-125m", 125'239'296,
   R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_attention_heads": 12,
        "num_hidden_layers": 12, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "vocab_size":
        50272})"},
  {"bloom-560m", 559'214'592,
   R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880,
        "seq_length": 2048})"},
  {"mpt-7b", 6'649'286'656,
   R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
        "max_seq_len": 2048, "no_bias": true, "vocab_size": 50432})"},
  {"olmo-7b", 6'888'095'744,
   R"({"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 2048,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "tie_word_embeddings":
        false, "vocab_size": 50304})"},
  {"olmo-2-7b", 7'298'617'344,
   R"({"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings":
        4096, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
        "tie_word_embeddings": false, "vocab_size": 100352})"},
  {"olmoe-1b-7b", 6'919'161'856,
   R"({"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024, "max_position_embeddings": 4096,
        "num_attention_heads": 16, "num_hidden_layers": 16, "num_key_value_heads": 16, "num_experts": 64,
        "num_experts_per_tok": 8, "tie_word_embeddings": false, "vocab_size": 50304})"},
  {"command-r", 34'980'831'232,
   R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528, "max_position_embeddings":
        8192, "num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64, "use_qk_norm":
        false, "vocab_size": 256000})"},
  {"stablelm-3b", 2'795'443'200,
   R"({"model_type": "stablelm", "hidden_size": 2560, "intermediate_size": 6912, "max_position_embeddings":
        4096, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
        "tie_word_embeddings": false, "use_qkv_bias": false, "vocab_size": 50304})"},
  {"glm-4-9b", 9'399'951'360,
   R"({"model_type": "glm", "hidden_size": 4096, "intermediate_size": 13696, "head_dim": 128,
        "num_attention_heads": 32, "num_key_value_heads": 2, "num_hidden_layers": 40, "attention_bias": true,
        "max_position_embeddings": 131072, "tie_word_embeddings": false, "vocab_size": 151552})"},
  {"chatglm of the same sizes", 9'399'951'360,
   R"({"model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696, "kv_channels": 128,
        "num_attention_heads": 32, "multi_query_attention": true, "multi_query_group_num": 2, "num_layers": 40,
        "add_qkv_bias": true, "seq_length": 131072, "padded_vocab_size": 151552, "tie_word_embeddings": false})"},
  {"qwen2.5-0.5b", 494'032'768,
   R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 32768,
        "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "sliding_window": 32768,
        "use_sliding_window": false, "tie_word_embeddings": true, "vocab_size": 151936})"},
  {"mixtral-8x22b", 140'630'071'296,
   R"({"model_type": "mixtral", "hidden_size": 6144, "intermediate_size": 16384, "max_position_embeddings":
        65536, "num_attention_heads": 48, "num_experts_per_tok": 2, "num_hidden_layers": 56,
        "num_key_value_heads": 8, "num_local_experts": 8, "sliding_window": null, "vocab_size": 32768})"},
  {"gpt-oss-20b", 20'914'757'184,
   R"({"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64,
        "num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 24, "num_local_experts": 32,
        "num_experts_per_tok": 4, "sliding_window": 128, "max_position_embeddings": 131072, "vocab_size":
        201088})"},
  {"minimax-m2", 228'689'764'864,
   R"({"model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536, "head_dim": 128,
        "num_attention_heads": 48, "num_key_value_heads": 8, "num_hidden_layers": 62, "num_local_experts": 256,
        "num_experts_per_tok": 8, "use_qk_norm": true, "use_routing_bias": true, "max_position_embeddings":
        196608, "vocab_size": 200064})"},
  {"llama-7b, early", 6'738'415'616,
   R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
        "max_sequence_length": 2048, "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000})"},
  {"gpt-2", 124'439'808,
   R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size":
        50257})"}};

const std::string& config_of(const std::string& name) {
  for (auto& x : model_files)
    if (x.name == name)
      return x.config;
  FAIL("there is no model " << name);
  return model_files.front().config;
}

language_model read(const std::string& config, const model_file_options& opts = {}) {
  auto x = parse_model(config, opts);
  REQUIRE_MESSAGE(x.engaged(), render(x.error()));
  return *x;
}

std::string with(std::string config, const std::string& from, const std::string& to) {
  const auto at = config.find(from);
  REQUIRE(at != config.npos);
  return config.replace(at, from.size(), to);
}

std::string refusal(const std::string& config, const model_file_options& opts = {}) {
  auto x = parse_model(config, opts);
  REQUIRE(!x.engaged());
  CHECK(code_of(x.error()) == errc::invalid_argument);
  return render(x.error());
}

} // namespace

TEST_CASE("model families: parameters are those that the checkpoints have, to the last one") {
  for (auto& x : model_files) {
    CAPTURE(x.name);
    CHECK(parameters_of(read(x.config)) == x.parameters);
  }
}

TEST_CASE("model families: layers' parameters are the whole model's, with its ends") {
  for (auto& x : model_files) {
    CAPTURE(x.name);
    const auto m = read(x.config);
    const auto parts = parameter_counts_of(m);
    double sum = parts.embedding + parts.output;
    uint32_t experts = 0, windowed = 0, both = 0;
    for (uint32_t layer = 0; layer < m.layers; ++layer) {
      sum += parameters_of_layer(m, layer);
      experts += m.has_experts(layer) ? 1 : 0;
      windowed += m.is_windowed(layer) ? 1 : 0;
      both += m.has_experts(layer) && m.is_windowed(layer) ? 1 : 0;
      for (uint32_t from : {0u, 1u, 2u, 5u})
        if (from <= layer) {
          uint32_t counted = 0, in_window = 0, with_both = 0;
          for (auto i = from; i <= layer; ++i) {
            counted += m.has_experts(i) ? 1 : 0;
            in_window += m.is_windowed(i) ? 1 : 0;
            with_both += m.has_experts(i) && m.is_windowed(i) ? 1 : 0;
          }
          REQUIRE(m.expert_layers_in(from, layer + 1) == counted);
          REQUIRE(m.windowed_layers_in(from, layer + 1) == in_window);
          REQUIRE(m.windowed_expert_layers_in(from, layer + 1) == with_both);
        }
    }
    CHECK(sum == parameters_of(m));
    CHECK(m.expert_layers_in(0, m.layers) == experts);
    CHECK(m.windowed_layers_in(0, m.layers) == windowed);
    CHECK(m.windowed_expert_layers_in(0, m.layers) == both);
  }
}

TEST_CASE("model families: a family has a name of its own, and one that is read as another has another's") {
  std::set<std::string_view> names;
  for (auto& x : model_families()) {
    CHECK(names.insert(x.name).second);
    CHECK(model_family_of(x.name) == &x);
  }
  CHECK(model_family_of("kimi_k2")->name == "deepseek_v3");
  CHECK(model_family_of("gemma3")->name == "gemma3_text");
  CHECK(model_family_of("nothing") == nullptr);
}

TEST_CASE("model families: layers have the windows that their family has") {
  auto full_layers = [](const language_model& m) {
    std::vector<uint32_t> result;
    for (uint32_t i = 0; i < m.layers; ++i)
      if (!m.is_windowed(i))
        result.push_back(i);
    return result;
  };
  CHECK(full_layers(read(config_of("gemma-3-1b"))) == std::vector<uint32_t>{5, 11, 17, 23});
  CHECK(full_layers(read(config_of("gemma-2-2b"))).size() == 13);
  CHECK(full_layers(read(config_of("gemma-2-2b"))).front() == 1);
  CHECK(full_layers(read(config_of("phi-3-mini"))).empty());
  CHECK(full_layers(read(config_of("deepseek-v3.2"))).empty()); // each query's best 2,048 keys
  CHECK(full_layers(read(config_of("deepseek-v3.2"), {.sequence = 2048})).size() == 61);
  CHECK(full_layers(read(config_of("qwen3-next-80b"))).size() == 12);
  CHECK(full_layers(read(config_of("qwen3-next-80b"), {.sequence = 128})).size() == 12); // no matter how short
  const auto scout = read(config_of("llama-4-scout, its text"), {.sequence = 32768});
  CHECK(full_layers(scout).size() == 12);
  CHECK(scout.chunked);
  CHECK(scout.keys_seen(true) == 4096);
  CHECK(scout.keys_seen(false) == 16384);
  CHECK(read(config_of("phi-3-mini")).keys_seen(true) == 2047 - 2047. * 2047 / 8192);
  const auto listed = with(config_of("gemma-3-1b"), R"("sliding_window_pattern": 6)",
                           R"("layer_types": ["sliding_attention", "sliding_attention", "full_attention", )"
                           R"("sliding_attention"])");
  const auto four = read(with(listed, R"("num_hidden_layers": 26)", R"("num_hidden_layers": 4)"));
  CHECK(full_layers(four) == std::vector<uint32_t>{2});
}

TEST_CASE("model families: operations count the keys that a window leaves, and more scores where all count") {
  auto windowed = read(config_of("phi-3-mini"), {.sequence = 4096}), free = windowed;
  free.window = 0;
  const double pairs = 4096 * (4096. / 2) - 4096 * windowed.keys_seen(true); // fewer, of a sample
  CHECK(flops_of(free, 1) - flops_of(windowed, 1) == doctest::Approx(6 * pairs * 32 * 32 * 2 * 96).epsilon(1e-12));
  CHECK(flops_of(free, 1, true) - flops_of(free, 1)
        == doctest::Approx(6 * 4096 * (4096. / 2) * 32 * 32 * 2 * 96).epsilon(1e-12));
  CHECK(flops_of(windowed, 1, true) == flops_of(windowed, 1)); // of a window no half is left out
}

TEST_CASE("model families: a text's part of a file is looked into, and may leave its flags to the whole") {
  const auto& config = config_of("gemma-3-4b, its text");
  const auto m = read(config);
  CHECK(m.text_only);
  CHECK(!read(config_of("gemma-3-1b")).text_only);
  CHECK(m.heads == 8);
  CHECK(m.head_size == 256);
  const auto outer = with(config, R"("text_config")", R"("tie_word_embeddings": false, "text_config")");
  CHECK(!read(outer).tied);
  CHECK(refusal(with(config, R"("num_hidden_layers": 34)", R"("num_hidden_layers": 0)"))
          .find("model, \"text_config\", \"num_hidden_layers\": must be a whole number from 1 to 65536, and is 0")
        != std::string::npos);
  const auto unnamed = with(config, R"("model_type": "gemma3_text", )", "");
  CHECK(parameters_of(read(unnamed)) == parameters_of(m)); // by the whole's model_type
  const auto mistral = R"({"model_type": "mistral3", "text_config": {"model_type": "mistral", "hidden_size": 5120,
    "intermediate_size": 32768, "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "head_dim": 128, "max_position_embeddings": 131072, "sliding_window": null, "vocab_size": 131072}})";
  CHECK(parameters_of(read(mistral)) == 23'572'403'200); // Mistral Small 3.1 without Pixtral
}

TEST_CASE("model families: one that is not known is offered the family whose members it has, which then reads it") {
  for (auto& [name, family, unknown] : {std::tuple{"kimi-k2", "deepseek_v3", "kimi_k9"},
                                        {"deepseek-v2-lite", "deepseek_v2", "deepseek_v9"},
                                        {"deepseek-v3.2", "deepseek_v32", "own"},
                                        {"glm-4.5-air", "glm4_moe", "glm9_moe"},
                                        {"qwen1.5-moe-a2.7b", "qwen2_moe", "own"},
                                        {"qwen3-next-80b", "qwen3_next", "own"},
                                        {"llama-7b, early", "llama", "llama9"},
                                        {"gpt-2", "gpt2", "own"},
                                        {"mixtral-8x22b", "mixtral", "own"}}) {
    CAPTURE(name);
    auto config = config_of(name);
    const auto at = config.find("\"model_type\": \"") + 15, end = config.find('"', at);
    config.replace(at, end - at, unknown);
    const auto why = refusal(config);
    CHECK(why.find(fmt::format("\"{}\" is not a known family of models; its members are those of {}: if its layers are "
                               "the same, --as {} reads it as one; known families are: llama, ",
                               unknown, family, family))
          != std::string::npos);
    CHECK(why.ends_with(fmt::format(", ... and {} more, see docs/cost_models.md", model_families().size() - 12)));
    CHECK(why.size() < 400);
    auto as = read(config, {.family = family});
    CHECK(as == read(config_of(name)));
  }
  const auto by_class = R"({"model_type": "own", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 1024,
    "intermediate_size": 3072, "num_attention_heads": 16, "num_hidden_layers": 28, "vocab_size": 151936})";
  CHECK(refusal(by_class).find("--as qwen3 reads it as one") != std::string::npos);
  CHECK(refusal(R"({"model_type": "mamba9", "state_size": 16})").find("--as") == std::string::npos);
  CHECK(refusal(by_class, {.family = "qwen9"}).find("there is no family of models \"qwen9\"; there are: llama, ")
        != std::string::npos);
}

TEST_CASE("model families: positions are the model's, and a table of them has as many rows whatever the sequence is") {
  for (auto sequence : {256u, 1024u, 8192u}) {
    CAPTURE(sequence);
    const auto m = read(config_of("gpt-2"), {.sequence = sequence});
    CHECK(parameters_of(m) == 124'439'808);
    CHECK(m.positions == 1024);
    CHECK(m.sequence == sequence);
  }
  CHECK(read(config_of("llama-7b, early")).positions == 2048);
  CHECK(read(with(config_of("llama-7b, early"), R"("max_sequence_length": 2048, )", "")).positions == 2048);
  CHECK(read(config_of("falcon-7b")).positions == 2048);
  CHECK(read(config_of("bloom-560m")).position_rows == 0);
  CHECK(read(config_of("opt-125m")).position_rows == 2050);
}

TEST_CASE("model families: biases are those that the file says") {
  const auto& config = config_of("llama-7b, early");
  const auto plain = parameters_of(read(config));
  auto more = [&](const std::string& member) {
    return parameters_of(read(with(config, "{", "{" + member + ", "))) - plain;
  };
  CHECK(more(R"("attention_bias": true)") == 32 * 4 * 4096);
  CHECK(more(R"("mlp_bias": true)") == 32 * (2 * 11008 + 4096));
  const auto glm = config_of("glm-4.5-air");
  const auto without = with(glm, R"("attention_bias": true)", R"("attention_bias": false)");
  CHECK(parameters_of(read(glm)) - parameters_of(read(without)) == 46 * 128 * (96 + 2 * 8)); // none behind attention
  CHECK(parameters_of(read(with(glm, R"("use_qk_norm": false)", R"("use_qk_norm": true)"))) - parameters_of(read(glm))
        == 46 * 2 * 128);
}
