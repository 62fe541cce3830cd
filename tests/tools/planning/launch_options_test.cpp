// What frameworks can run, and a plan as their options.
#include "planner/plans/launch_options.hpp"

#include "planner/models/known_models.hpp"
#include "runtime/text/json_field.hpp"
#include "tests/support/captured_command.hpp"
#include "tests/support/text_search.hpp"
#include "tools/options/commands.hpp"
#include "tools/planning/plan_report.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <sstream>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

training_setting on_stages(uint32_t pipeline, uint32_t chunks = 1) {
  training_setting how;
  how.set_degrees(1, 2, pipeline);
  how.chunks = chunks;
  how.global_batch = 64;
  how.schedule = chunks > 1 ? pipeline_schedule::interleaved_1f1b : pipeline_schedule::one_f_one_b;
  how.zero = 1;
  return how;
}

/// Of a layout's pieces, the layers in each: "Et*3|(tt|)*2tL" has 3, 2, 2 and 1.
std::vector<uint32_t> layers_of_layout(std::string layout) {
  for (auto open = layout.find('('); open != layout.npos; open = layout.find('(')) {
    const auto close = layout.find(")*", open);
    size_t digits = 0;
    const auto times = std::stoul(layout.substr(close + 2), &digits);
    const auto piece = layout.substr(open + 1, close - open - 1);
    std::string all;
    for (size_t i = 0; i < times; ++i)
      all += piece;
    layout.replace(open, close + 2 + digits - open, all);
  }
  std::vector<uint32_t> result;
  std::stringstream pieces{layout};
  for (std::string piece; std::getline(pieces, piece, '|');) {
    const auto star = piece.find("t*");
    result.push_back(star != piece.npos ? static_cast<uint32_t>(std::stoul(piece.substr(star + 2)))
                                        : static_cast<uint32_t>(std::ranges::count(piece, 't')));
  }
  return result;
}

} // namespace

TEST_CASE("launch options: a framework is offered no schedule and no sharding that it does not have") {
  using enum training_framework;
  using enum pipeline_schedule;
  auto how = on_stages(4);
  CHECK(can_run(megatron, how));
  CHECK(!can_run(torchtitan, how)); // the optimizer's states alone are not shared
  for (auto schedule : {all_forwards_first, zb_h1, zb_h2, zb_v, dualpipe}) {
    how.schedule = schedule;
    CHECK(can_run(any, how));
    CHECK(!can_run(megatron, how));
    how.zero = 2;
    CHECK(can_run(torchtitan, how) == (schedule == all_forwards_first || schedule == zb_v));
    how.zero = 1;
  }
  how = on_stages(1);
  how.shard_ranks = 2;
  how.zero = 0;
  CHECK(can_run(megatron, how));
  CHECK(can_run(torchtitan, how));
  how.tp = 2;
  CHECK(!can_run(torchtitan, how));
  how.sequence_parallel = true;
  CHECK(can_run(torchtitan, how));
  how.computed_in = number_format::nvfp4;
  CHECK(!can_run(torchtitan, how));
  how = on_stages(4);
  how.zero = 2;
  CHECK(!can_run(megatron, how));
}

TEST_CASE("launch options: Megatron-LM's layout has each layer once, the embedding first and the loss last") {
  for (auto* name : {"llama3.1-405b", "deepseek-v3", "qwen3-235b-a22b"})
    for (auto [pipeline, chunks] : {std::pair{4u, 1u}, {8u, 1u}, {16u, 1u}, {8u, 4u}}) {
      auto m = *model_of(name);
      const auto how = on_stages(pipeline, chunks);
      CAPTURE(name);
      CAPTURE(pipeline);
      const auto layout = megatron_layout(m, how);
      const auto layers = layers_of_layout(layout);
      CHECK(layers.size() == pipeline * chunks);
      CHECK(std::accumulate(layers.begin(), layers.end(), 0u) == m.layers);
      CHECK(layout.starts_with("E"));
      CHECK(occurrences(layout, "E") == 1);
      CHECK(occurrences(layout, "L") == 1);
      m.multi_token = 1;
      CHECK(contains(megatron_layout(m, how), "mL"));
    }
  CHECK(megatron_layout(*model_of("llama3-8b"), on_stages(4)) == "Et*8|(t*8|)*2t*8L");
  CHECK(megatron_layout(*model_of("llama3.1-405b"), on_stages(16, 8)) == "E|(t|)*126L");
}

TEST_CASE("launch options: what a plan says is in Megatron-LM's flags") {
  const auto m = *model_of("qwen3-30b-a3b");
  auto how = on_stages(4, 3);
  how.tp = 2;
  how.cp = 2;
  how.ep = 8;
  how.sequence_parallel = true;
  how.again = recomputation::selective;
  how.gradient_bytes = 2;
  how.state_bytes = 8;
  how.computed_in = number_format::fp8;
  const auto text = megatron_options(m, how);
  for (auto* flag :
       {"--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --context-parallel-size 2",
        "--expert-model-parallel-size 8", "--num-virtual-stages-per-pipeline-rank 3", "--sequence-parallel",
        "--use-distributed-optimizer", "--fp8-format hybrid", "--grad-reduce-in-bf16", "--exp-avg-dtype bf16",
        "--recompute-granularity selective --recompute-modules layernorm moe_act",
        "--micro-batch-size 1 --global-batch-size 64 --seq-length 4096", "--moe-enable-deepep"})
    CHECK_MESSAGE(contains(text, flag), flag);
  CHECK(!contains(text, "--pipeline-model-parallel-layout"));
  CHECK(contains(megatron_options(*model_of("llama3.1-405b"), on_stages(16)), "--pipeline-model-parallel-layout 'E"));
  std::stringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    CHECK(line.size() <= 100);
}

TEST_CASE("launch options: torchtitan's degrees multiply to the GPUs, and a step has the batch's samples") {
  auto how = on_stages(1);
  how.set_degrees(4, 16, 1);
  how.shard_ranks = 8;
  how.zero = 0;
  how.sequence_parallel = true;
  how.micro_batch = 2;
  const auto text = torchtitan_options(*model_of("llama3-8b"), how);
  for (auto* part : {"data_parallel_replicate_degree = 2\n", "data_parallel_shard_degree = 8\n",
                     "tensor_parallel_degree = 4\n", "pipeline_parallel_degree = 1\n", "local_batch_size = 2\n",
                     "global_batch_size = 64\n", "seq_len = 8192\n", "fsdp_reshard_after_forward = \"always\"\n"})
    CHECK_MESSAGE(contains(text, part), part);
  auto stages = on_stages(4, 2);
  stages.zero = 2;
  const auto pipeline = torchtitan_options(*model_of("llama3-8b"), stages);
  CHECK(contains(pipeline, "local_batch_size = 32\n"));
  CHECK(contains(pipeline,
                 "pipeline_parallel_schedule = \"Interleaved1F1B\"\npipeline_parallel_microbatch_size = 1\n"));
  CHECK(contains(pipeline, "pipeline_parallel_layers_per_stage = 4\n"));
}

TEST_CASE("launch options: a named framework's search has its plans alone, and prints the best as its options") {
  auto page = [](const char* framework, bool json) {
    std::vector<std::string> args{"--model=llama3-70b", "--system=h100-80g", "--gpus=128", "--global-batch=256",
                                  std::string{"--framework="} + framework};
    if (json)
      args.emplace_back("--json");
    const auto found = run_command(plan_command(), args);
    REQUIRE_MESSAGE(found.code == 0, found.err);
    return found.out;
  };
  for (auto* framework : {"megatron", "torchtitan"}) {
    CAPTURE(framework);
    const auto text = page(framework, true);
    const auto json = parse_json(text);
    REQUIRE(json);
    for (auto* other : {"zb-v", "zb-h1", "zb-h2", "dualpipe"})
      CHECK(!contains(text, other));
    CHECK(contains(text, std::string{"\"frameworks\":[\""}));
    CHECK(!contains(text, "\"frameworks\":[]"));
  }
  CHECK(contains(page("megatron", false),
                 "The first of them as options of Megatron-LM:\n--tensor-model-parallel-size"));
  CHECK(contains(page("torchtitan", false), "The first of them as options of torchtitan (TOML):\n[training]"));
  const std::vector<std::string> zb_v{"--model=llama3-8b", "--system=h100-80g", "--gpus=16",      "--pipeline=4",
                                      "--global-batch=64", "--schedule=zb-v",   "--framework=any"};
  auto by_megatron = zb_v;
  by_megatron.back() = "--framework=megatron";
  CHECK(contains(run_command(plan_command(), zb_v).out, "zb-v"));
  const auto refused = run_command(plan_command(), by_megatron);
  CHECK(refused.code == 1);
  CHECK(contains(in_one_line(refused.out), "without --framework some do"));
  CHECK(run_command(plan_command(), {"--gpus=8", "--global-batch=8", "--framework=jax"}).code == 2);
}

TEST_CASE("launch options: plans within the estimate's error are ties, and the page says what means nothing") {
  plan_question dense{*model_of("llama3-8b"), *system_of("h100-80g"), 8, 8},
    sparse{*model_of("qwen3-30b-a3b"), *system_of("h100-80g"), 8, 8};
  CHECK(band_of(sparse, 10, 10).tie);
  CHECK(band_of(sparse, 10.79, 10).tie);
  CHECK(!band_of(sparse, 10.81, 10).tie);
  dense.filter.computed_in = number_format::fp8;
  CHECK(band_of(dense, 10.49, 10).tie);
  CHECK(!band_of(dense, 10.51, 10).tie);
  CHECK(band_of(dense, 10, 10).least == doctest::Approx(9.5));
  CHECK(band_of(dense, 10, 10).most == doctest::Approx(10.5));
  const auto found = run_command(plan_command(), {"--model=llama3-8b", "--system=h100-80g", "--precision=fp8",
                                                  "--gpus=16", "--global-batch=64"});
  CHECK(contains(in_one_line(found.out), "Differences of less than 5 % mean nothing: beside published trainings"));
  CHECK(contains(found.out, "error band"));
  const auto at = found.out.find("The same plans, with the error of an estimate:");
  REQUIRE(at != std::string::npos);
  std::stringstream lines{found.out.substr(at)};
  for (std::string line; std::getline(lines, line) && !line.starts_with("Differences");)
    CHECK(line.size() <= 100);
}
