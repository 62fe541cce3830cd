// Configuration files as Hugging Face publishes them beside the checkpoints.
#include "planner/models/known_models.hpp"
#include "planner/models/model_file.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

const std::string llama3_8b_config = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
  "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 14336,
  "max_position_embeddings": 8192,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256
})";

const std::string llama31_405b_config = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "hidden_act": "silu", "hidden_size": 16384,
  "intermediate_size": 53248, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 128, "num_hidden_layers": 126, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256
})";

const std::string mistral_7b_config = R"({
  "architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "sliding_window": 4096,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000
})";

const std::string qwen25_7b_config = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28, "model_type": "qwen2",
  "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
  "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "use_mrope": false, "use_sliding_window": false, "vocab_size": 152064
})";

const std::string qwen3_8b_config = R"({
  "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 12288, "max_position_embeddings": 40960, "max_window_layers": 36,
  "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936
})";

const std::string qwen3_30b_config = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128,
  "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48,
  "mlp_only_layers": [],
  "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32,
  "num_experts": 128,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
  "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936
})";

const std::string mixtral_config = R"({
  "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
  "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
  "output_router_logits": false, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": null,
  "tie_word_embeddings": false, "vocab_size": 32000
})";

const std::string deepseek_v3_config = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "ep_size": 1,
  "first_k_dense_replace": 3,
  "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8,
  "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "quantization_config": {"fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
  "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false,
  "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280
})";

const std::string gpt2_config = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
  "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_type": "cls_index",
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257
})";

/// Of 36 layers the first, the third and so on have windows.
std::string gpt_oss_120b_config() {
  std::string types;
  for (int i = 0; i < 18; ++i)
    types += std::string{i == 0 ? "" : ", "} + R"("sliding_attention", "full_attention")";
  return R"({
  "architectures": ["GptOssForCausalLM"], "attention_bias": true, "experts_per_token": 4, "head_dim": 64,
  "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096, "intermediate_size": 2880,
  "layer_types": [)"
         + types + R"(],
  "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64, "num_experts_per_tok": 4,
  "num_hidden_layers": 36, "num_key_value_heads": 8, "num_local_experts": 128, "rope_theta": 150000,
  "sliding_window": 128,
  "swiglu_limit": 7.0, "tie_word_embeddings": false, "vocab_size": 201088
})";
}

std::string changed(std::string config, const std::string& from, const std::string& to) {
  const auto at = config.find(from);
  REQUIRE(at != config.npos);
  return config.replace(at, from.size(), to);
}

language_model model_in(const std::string& config, std::optional<uint32_t> sequence = std::nullopt) {
  auto x = parse_model(config, {sequence});
  REQUIRE_MESSAGE(x.engaged(), render(x.error()));
  return *x;
}

std::string refusal_of_model(const std::string& config, std::optional<uint32_t> sequence = std::nullopt) {
  auto x = parse_model(config, {sequence});
  REQUIRE(!x.engaged());
  CHECK(code_of(x.error()) == errc::invalid_argument);
  return render(x.error());
}

} // namespace

TEST_CASE("model files: each family's file says what the known model of that name is") {
  struct known_file {
    const char* name;
    std::string config;
  };
  for (auto& file : {known_file{"llama3-8b", llama3_8b_config}, known_file{"llama3.1-405b", llama31_405b_config},
                     known_file{"qwen3-30b-a3b", qwen3_30b_config}, known_file{"mixtral-8x7b", mixtral_config},
                     known_file{"gpt-oss-120b", gpt_oss_120b_config()}, known_file{"deepseek-v3", deepseek_v3_config},
                     known_file{"gpt2-117m", gpt2_config}}) {
    CAPTURE(file.name);
    const auto known = *model_of(file.name);
    auto found = model_in(file.config, known.sequence);
    CHECK(found.name != known.name);
    found.name = known.name;
    CHECK(found.multi_token == (known.name == "deepseek-v3" ? 1 : 0)); // of which the known one has none by default
    found.multi_token = 0;
    CHECK((found == known));
  }
}

TEST_CASE("model files: parameters are those that the checkpoints have") {
  // Of the checkpoints' own counts at Hugging Face; gpt-oss of its model card, table 1; DeepSeek-V3 of its report.
  CHECK(parameters_of(model_in(llama3_8b_config)) == 8'030'261'248);
  CHECK(parameters_of(model_in(llama31_405b_config)) == 405'853'388'800);
  CHECK(parameters_of(model_in(mistral_7b_config, 4096)) == 7'241'732'096);
  CHECK(parameters_of(model_in(qwen25_7b_config)) == 7'615'616'512);
  CHECK(parameters_of(model_in(qwen3_8b_config)) == 8'190'735'360);
  CHECK(parameters_of(model_in(qwen3_30b_config)) == 30'532'122'624);
  CHECK(parameters_of(model_in(mixtral_config)) == 46'702'792'704);
  CHECK(parameters_of(model_in(gpt2_config)) == 124'439'808);
  CHECK(std::abs(parameters_of(model_in(gpt_oss_120b_config())) / 116.83e9 - 1) < 1e-4);
  CHECK(std::abs(parameters_of(model_in(deepseek_v3_config)) / 671e9 - 1) < 1e-3);
}

TEST_CASE("model files: samples have the positions that are asked for, else 8,192 of the model's at most") {
  CHECK(model_in(llama31_405b_config).sequence == 8192);
  CHECK(model_in(llama31_405b_config, 65536).sequence == 65536);
  CHECK(model_in(changed(llama3_8b_config, "8192", "4096")).sequence == 4096);
  CHECK(model_in(gpt2_config).sequence == 1024);
}

TEST_CASE("model files: members that a family may leave out are as its own") {
  auto m = model_in(changed(llama3_8b_config, R"("num_key_value_heads": 8,)", ""));
  CHECK(m.key_value_heads == 32);
  CHECK(model_in(changed(llama3_8b_config, R"("rope_scaling")", R"("head_dim": 64, "rope_scaling")")).head_size == 64);
  CHECK(model_in(changed(llama3_8b_config, R"("tie_word_embeddings": false, )", "")).tied == false);
  CHECK(model_in(changed(llama3_8b_config, R"("tie_word_embeddings": false)", R"("tie_word_embeddings": true)")).tied);
  CHECK(model_in(changed(deepseek_v3_config, R"("q_lora_rank": 1536)", R"("q_lora_rank": null)")).latent.query_rank
        == 0);
  m = model_in(changed(gpt2_config, R"("n_ctx")", R"("n_inner": 1024, "tie_word_embeddings": false, "n_ctx")"));
  CHECK(m.width == 1024);
  CHECK(!m.tied);
  m = model_in(changed(gpt_oss_120b_config(), R"("num_experts_per_tok": 4,)", ""));
  CHECK(m.experts.chosen == 4);
}

TEST_CASE("model files: windows are in the layers that the file says, and irregular ones are refused") {
  CHECK(model_in(gpt_oss_120b_config()).window == 128);
  const auto begin = gpt_oss_120b_config().find("\"layer_types\""), end = gpt_oss_120b_config().find("\"max_position");
  CHECK(model_in(gpt_oss_120b_config().erase(begin, end - begin)).window == 128);
  const auto mistral = model_in(mistral_7b_config);
  CHECK(mistral.sequence == 8192);
  CHECK(mistral.windowed_layers_in(0, 32) == 32);
  CHECK(!model_in(mistral_7b_config, 4096).has_windows());
  CHECK(model_in(changed(qwen25_7b_config, R"("use_sliding_window": false, )", "")).window == 0);
  const auto used = changed(qwen25_7b_config, R"("use_sliding_window": false)", R"("use_sliding_window": true)");
  CHECK(model_in(used).window == 0); // max_window_layers of them have none, which are all
  const auto upper = changed(changed(used, R"("max_window_layers": 28)", R"("max_window_layers": 20)"),
                             R"("sliding_window": 131072)", R"("sliding_window": 4096)");
  CHECK(model_in(upper).windowed_layers_in(0, 28) == 8);
  CHECK(!model_in(upper).is_windowed(19));
  CHECK(model_in(upper).is_windowed(20));
  const auto irregular = changed(gpt_oss_120b_config(), R"("sliding_attention", "full_attention")",
                                 R"("full_attention", "full_attention")");
  CHECK(refusal_of_model(irregular).find("\"layer_types\": must be regular, such as full attention in every second or "
                                         "sixth layer, where windows are shorter than a sequence (--sequence 128 "
                                         "would do)")
        != std::string::npos);
  CHECK(!model_in(irregular, 128).has_windows());
  CHECK(refusal_of_model(changed(gpt_oss_120b_config(), R"("sliding_attention", )", ""))
          .find("\"layer_types\": must be a list with a text for each of the 36 layers")
        != std::string::npos);
  CHECK(refusal_of_model(changed(gpt_oss_120b_config(), "full_attention", "linear_attention"))
          .find("\"layer_types\", entry 1: must be full_attention or sliding_attention: this family has no other, and "
                "is \"linear_attention\"")
        != std::string::npos);
}

TEST_CASE("model files: what is missing or makes no sense is refused with its place and what it must be") {
  CHECK(refusal_of_model("[]") == "model: must be an object, as Hugging Face's config.json, and is []");
  CHECK(refusal_of_model("{\"model_type\": }").starts_with("line 1, column 16: this is not JSON: "));
  CHECK(refusal_of_model(R"({"model_type": "gemma9"})")
          .starts_with("model, \"model_type\": \"gemma9\" is not a known family of models; "));
  CHECK(refusal_of_model(R"({"model_type": "gema"})")
          .find("\"gema\" is not a known family of models (did you mean gemma?); known families are: llama, mistral, ")
        != std::string::npos);
  CHECK(refusal_of_model("{}").find("\"model_type\": is missing; known families are: llama") != std::string::npos);
  auto of_llama = [](const char* from, const char* to) {
    return refusal_of_model(changed(llama3_8b_config, from, to));
  };
  CHECK(of_llama(R"("intermediate_size": 14336,)", "")
        == "model, \"intermediate_size\": must be a whole number from 1 to 1048576, and is missing");
  CHECK(of_llama("14336", "14336.5")
        == "model, \"intermediate_size\": must be a whole number from 1 to 1048576, and is 14336.5");
  CHECK(of_llama(R"("num_hidden_layers": 32)", R"("num_hidden_layers": 0)")
        == "model, \"num_hidden_layers\": must be a whole number from 1 to 65536, and is 0");
  CHECK(of_llama(R"("num_key_value_heads": 8)", R"("num_key_value_heads": 5)")
        == "model, \"num_key_value_heads\": must be a number that divides the 32 heads of queries, "
           "and is 5");
  CHECK(of_llama(R"("num_attention_heads": 32)", R"("num_attention_heads": 24)")
          .find("among which the hidden size of 4096 divides")
        != std::string::npos);
  CHECK(refusal_of_model(changed(deepseek_v3_config, R"("attention_bias": false)", R"("attention_bias": true)"))
          .find("\"attention_bias\": must be false")
        != std::string::npos);
  CHECK(of_llama(R"("vocab_size": 128256)", R"("vocab_size": "128k")").ends_with("and is \"128k\""));
  CHECK(refusal_of_model(changed(gpt2_config, R"("n_head": 12)", R"("n_head": 10)"))
        == "model, \"n_head\": must be a number of heads among which the hidden size of 768 "
           "divides, or \"head_dim\" be there, and is 10");
}

TEST_CASE("model files: one that ends too early is refused, wherever it ends") {
  for (auto& config : {gpt_oss_120b_config(), deepseek_v3_config, gpt2_config})
    for (size_t end = 0; end < config.size(); ++end) {
      CAPTURE(end);
      CHECK(!parse_model(std::string_view{config}.substr(0, end)).engaged());
    }
}

TEST_CASE("model files: experts that cannot be, or that plans do not know, are refused") {
  CHECK(refusal_of_model(changed(qwen3_30b_config, R"("num_experts_per_tok": 8)", R"("num_experts_per_tok": 129)"))
        == "model, \"num_experts_per_tok\": must be at most \"num_experts\", the 128 experts of a "
           "layer, and is 129");
  CHECK(refusal_of_model(changed(qwen3_30b_config, R"("mlp_only_layers": [])", R"("mlp_only_layers": [0, 3])"))
          .find("\"mlp_only_layers\": must be a list of the first layers")
        != std::string::npos);
  CHECK(refusal_of_model(changed(deepseek_v3_config, R"("moe_layer_freq": 1)", R"("moe_layer_freq": 2)"))
          .find("\"moe_layer_freq\": must be 1")
        != std::string::npos);
  const auto second = model_in(changed(qwen3_30b_config, R"("decoder_sparse_step": 1)", R"("decoder_sparse_step": 2)"));
  CHECK(second.expert_layers_in(0, 48) == 24);
  CHECK(!second.has_experts(0));
  CHECK(second.has_experts(1));
  CHECK(second.width == 6144);
  const auto first = model_in(changed(qwen3_30b_config, R"("mlp_only_layers": [])", R"("mlp_only_layers": [0, 1])"));
  CHECK(first.experts.dense_first == 2);
  CHECK(refusal_of_model(changed(deepseek_v3_config, R"("first_k_dense_replace": 3)", R"("first_k_dense_replace": 62)"))
        == "model, \"first_k_dense_replace\": must be at most all 61 layers, and is 62");
  CHECK(refusal_of_model(changed(deepseek_v3_config, R"("num_nextn_predict_layers": 1)",
                                 R"("num_nextn_predict_layers": true)"))
          .find("\"num_nextn_predict_layers\": must be a whole number from 0 to 64, and is true")
        != std::string::npos);
  CHECK(refusal_of_model(changed(llama3_8b_config, R"("model_type")", R"("num_local_experts": 8, "model_type")"))
          .find("\"num_local_experts\": must be missing: this family's layers are dense")
        != std::string::npos);
}

TEST_CASE("model files: what has a slash, ends in .json or is there is a file; else it is a name") {
  test::temporary_directory dir;
  const auto file = (dir.path() / "config.json").string();
  std::ofstream{file} << qwen3_8b_config;
  auto read = model_from(file, {2048});
  REQUIRE_MESSAGE(read.engaged(), render(read.error()));
  CHECK(read->name == file);
  CHECK(read->sequence == 2048);
  CHECK(model_from("llama3-8b")->layers == 32);
  auto refusal = [](const std::string& text) { return render(model_from(text).error()); };
  CHECK(refusal("llama9").find("there is no model \"llama9\"; there are: gpt2-117m") != std::string::npos);
  CHECK(refusal("nowhere.json") == "cannot read nowhere.json: No such file or directory");
  CHECK(refusal(dir.path().string()) == dir.path().string() + " is a directory: name the file in it");
  std::ofstream{file} << "{\"model_type\": \"gemma9\"}";
  CHECK(code_of(model_from(file).error()) == errc::corrupt);
  CHECK(refusal(file).starts_with(file + ": model, \"model_type\": \"gemma9\" is not a known family of models; "));
}

TEST_CASE("model files: groups of experts count where some are chosen, and experts divide among them") {
  auto groups = [](const std::string& count, const std::string& chosen) {
    const auto x = model_in(changed(changed(deepseek_v3_config, "\"n_group\": 8", "\"n_group\": " + count),
                                    "\"topk_group\": 4", "\"topk_group\": " + chosen));
    return std::pair{x.experts.groups, x.experts.groups_chosen};
  };
  CHECK(groups("8", "4") == std::pair{8u, 4u});
  CHECK(groups("1", "1") == std::pair{0u, 0u}); // Moonlight's, and Kimi K2's: no groups
  CHECK(groups("8", "8") == std::pair{0u, 0u});
  CHECK(groups("8", "null") == std::pair{0u, 0u});
  CHECK(refusal_of_model(changed(deepseek_v3_config, "\"topk_group\": 4", "\"topk_group\": 9"))
          .find("\"topk_group\": must be at most \"n_group\", the 8 groups of experts")
        != std::string::npos);
  CHECK(refusal_of_model(changed(deepseek_v3_config, "\"n_group\": 8", "\"n_group\": 7"))
          .find("must be a number of groups among which 256 experts divide")
        != std::string::npos);
}
