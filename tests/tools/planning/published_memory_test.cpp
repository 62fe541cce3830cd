// What was published as having run fits, with what is left free for context, NCCL and fragmentation.
#include "planner/estimates/memory_estimate.hpp"
#include "planner/models/known_models.hpp"
#include "planner/systems/gpu_system.hpp"
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// DeepSeek-AI 2024, sections 3.2 to 3.4: 16 stages, experts over 64 GPUs, ZeRO 1, no tensor parallelism; moments in
/// bf16; norms, up-projections of latent attention and SwiGLU computed again.
training_setting of_deepseek_v3() {
  training_setting how;
  how.set_degrees(1, 128, 16);
  how.ep = 64;
  how.global_batch = 15360;
  how.chunks = 2;
  how.schedule = pipeline_schedule::dualpipe;
  how.again = recomputation::selective;
  how.zero = 1;
  how.overlapped = true;
  how.state_bytes = 8;
  how.computed_in = number_format::fp8;
  return how;
}

} // namespace

TEST_CASE("published memory: DeepSeek-V3 fits on its H800 as it was trained, 4 GB left free") {
  auto m = *model_of("deepseek-v3");
  m.multi_token = 1;
  const auto h800 = *system_of("h800-80g");
  CHECK(h800.reserved_bytes == 4e9);
  CHECK(memory_of(m, of_deepseek_v3()).total() < h800.room_bytes());
  auto stored_wide = of_deepseek_v3(); // without fp8 nothing of this is smaller, and it does not fit
  stored_wide.computed_in = number_format::bf16;
  CHECK(memory_of(m, stored_wide).total() > h800.room_bytes());
}

TEST_CASE("published memory: selective recomputation keeps what gates read in the format of the products") {
  auto m = *model_of("llama3-8b");
  training_setting how;
  how.again = recomputation::selective;
  const double rows = m.sequence;
  const auto of = [&](number_format format) {
    how.computed_in = format;
    return activation_bytes(m, 1, how, {});
  };
  // of two inputs of a gate, a byte each less; of attention's output and what the next product reads one more
  const double heads = m.heads * m.head_size;
  CHECK(of(number_format::fp8) - of(number_format::bf16) == doctest::Approx(rows * (heads - 2.0 * m.width)));
  how.again = recomputation::none;
  m.gated = false;
  const auto plain = of(number_format::fp8);
  how.again = recomputation::selective;
  CHECK(plain - of(number_format::fp8) == doctest::Approx(rows * (2.0 * m.hidden + m.width))); // its input stays wide
}

TEST_CASE("published memory: Qwen3-30B with micro-batches of 4 fits on eight H100") {
  const auto found = run_command(plan_command(), {"--model=qwen3-30b-a3b", "--system=h100-80g", "--gpus=8",
                                                  "--global-batch=512", "--micro-batch=4", "--expert=8",
                                                  "--schedule=fsdp", "--gradients=bf16", "--optimizer-states=bf16"});
  CHECK(found.code == 0);
  CHECK(contains(found.out, "4.0 GB being left free"));
}

TEST_CASE("published memory: Kimi K2 fits on 256 H100 with FSDP and experts over 64 ranks, also as simulated") {
  temporary_directory dir;
  const auto file = (dir.path() / "config.json").string();
  std::ofstream{file} << R"({"model_type": "kimi_k2", "hidden_size": 7168, "intermediate_size": 18432,
    "moe_intermediate_size": 2048, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_group": 1, "topk_group": 1, "num_attention_heads": 64,
    "num_key_value_heads": 64, "num_hidden_layers": 61, "vocab_size": 163840, "tie_word_embeddings": false})";
  const auto found = run_command(plan_command(), {"--model=" + file, "--system=h100-80g", "--gpus=256",
                                                  "--global-batch=512", "--sequence=4096", "--expert=64", "--tensor=1",
                                                  "--context=1", "--schedule=fsdp", "--recompute=full", "--json"});
  const auto json = parse_json(found.out);
  REQUIRE_MESSAGE(json.engaged(), found.err);
  const auto& best = json->at("best").at(0);
  const auto room = system_of("h100-80g")->room_bytes();
  CHECK(json->at("parameters").get<double>() == 1'026'408'232'448);
  CHECK(best.at("memory_bytes").get<double>() < room);
  CHECK(best.at("simulated_memory_bytes").get<double>() < room);
  // Sharded over all ranks: 2 bytes of weight, 4 of gradient and 12 of optimizer states for each parameter.
  CHECK(best.at("memory_bytes").get<double>() > 18 * 1.026e12 / 256);
}

TEST_CASE("published memory: what --reserve leaves free is none of what must fit") {
  auto args = [](const char* reserve) {
    return std::vector<std::string>{"--model=llama3-8b",
                                    "--system=h100-80g",
                                    "--gpus=8",
                                    "--global-batch=64",
                                    "--json",
                                    std::string{"--reserve="} + reserve};
  };
  auto fitting = [&](const char* reserve) {
    const auto found = run_command(plan_command(), args(reserve));
    REQUIRE_MESSAGE(found.code == 0, found.err);
    const std::string name = "\"fitting\":";
    return std::stoul(found.out.substr(found.out.find(name) + name.size()));
  };
  CHECK(fitting("1GB") > fitting("4GB"));
  CHECK(fitting("4GB") > fitting("40GB"));
  CHECK(contains(run_command(plan_command(), args("8GB")).out, "\"reserved_bytes\":8000000000"));
  const auto refused = run_command(plan_command(), args("100GB"));
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "leaves nothing of the 85.5 GB of h100-80g"));
}
