// What is published of models, and what one costs, must come out.
#include "messages/errc.hpp"
#include "planner/estimates/layer_times.hpp"
#include "planner/estimates/memory_estimate.hpp"
#include "planner/estimates/stage_layers.hpp"
#include "planner/models/known_models.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster::training;

TEST_CASE("language models: parameters are those that are published") {
  struct published {
    const char* name;
    double all, active; ///< Exact where a checkpoint says it, else as many digits as are said.
  };
  // Llama: the checkpoints' own counts (Hugging Face). Qwen3: the same; active as in the technical report, table 2.
  // Mixtral: the checkpoint; active as in Jiang et al. 2024. gpt-oss: the model card, table 1, whose active ones leave
  // out the embedding. DeepSeek-V3: the technical report, 671B and 37B, and the checkpoint's tensors without MTP's.
  for (auto& x : {published{"llama3-8b", 8'030'261'248, 8'030'261'248},
                  {"llama3-70b", 70'553'706'496, 70'553'706'496},
                  {"llama3.1-405b", 405'853'388'800, 405'853'388'800},
                  {"qwen3-30b-a3b", 30'532'122'624, 3.3e9},
                  {"qwen3-235b-a22b", 235'093'634'560, 22e9},
                  {"mixtral-8x7b", 46'702'792'704, 12.9e9},
                  {"gpt-oss-120b", 116.83e9, 5.13e9},
                  {"deepseek-v3", 671'026'419'200, 37e9},
                  {"gpt2-117m", 124'439'808, 124'439'808}}) {
    CAPTURE(x.name);
    const auto m = *model_of(x.name);
    const auto all = parameters_of(m);
    auto active = active_parameters_of(m);
    if (m.name == "gpt-oss-120b")
      active -= static_cast<double>(m.vocabulary) * m.hidden;
    const bool exact = std::fmod(x.all, 1e6) != 0;
    CHECK(std::abs(all - x.all) <= (exact ? 0 : x.all * 1e-3));
    CHECK(std::abs(active / x.active - 1) < 0.02);
  }
}

TEST_CASE("language models: operations of a token are those that NVIDIA's published runs count") {
  // Model TFLOP/s by tokens/s in bench/data/gpu_pretraining.
  struct counted {
    const char* name;
    uint32_t sequence, multi_token;
    double gigaflops;
  };
  for (auto& x : {counted{"llama3-8b", 8192, 0, 51.48},
                  {"llama3-70b", 8192, 0, 447.9},
                  {"llama3.1-405b", 8192, 0, 2524},
                  {"qwen3-30b-a3b", 4096, 0, 23.0},
                  {"qwen3-235b-a22b", 4096, 0, 147.9},
                  {"deepseek-v3", 4096, 0, 249.4},
                  {"deepseek-v3", 4096, 1, 260.0},
                  {"gpt-oss-120b", 4096, 0, 32.6}}) {
    CAPTURE(x.name);
    auto m = *model_of(x.name);
    m.sequence = x.sequence;
    m.multi_token = x.multi_token;
    CHECK(std::abs(flops_of(m, 1) / x.sequence / 1e9 / x.gigaflops - 1) < 0.005);
  }
}

TEST_CASE("language models: a gpt counts whole scores as Narayanan et al. 2021 do") {
  const auto m = *model_of("gpt3-175b");
  const double h = m.hidden, s = m.sequence, l = m.layers, v = m.vocabulary;
  const auto formula = 72 * 8 * s * l * h * h * (1 + s / (6 * h) + v / (12 * h * l));
  CHECK(std::abs(flops_of(m, 8, true) / formula - 1) < 1e-12);
}

TEST_CASE("language models: what is above an expert's capacity is neither computed nor kept") {
  auto uneven = *model_of("mixtral-8x7b");
  uneven.experts.imbalance = 2;
  auto less = uneven, dropped = uneven;
  less.experts.imbalance = 1.25;
  dropped.experts.capacity = 1.25;
  const auto on = *system_of("h100-80g");
  training_setting how;
  how.set_degrees(1, 8, 1);
  how.ep = how.global_batch = 8;
  const layer_kind kind{true, false};
  auto seconds = [&](const language_model& m) { return layer_times_of(m, on, how, kind).forward; };
  auto bytes = [&](const language_model& m) { return activation_bytes(m, 1, how, kind); };
  CHECK(bytes(dropped) == bytes(less));
  CHECK(bytes(dropped) < bytes(uneven));
  CHECK(seconds(dropped) < seconds(uneven));
  dropped.experts.capacity = 4; // more than any rank is sent
  CHECK(bytes(dropped) == bytes(uneven));
  CHECK(seconds(dropped) == seconds(uneven));
  how.ep = 1; // a rank that has all experts is sent nothing by others
  CHECK(bytes(dropped) == bytes(*model_of("mixtral-8x7b")));
  CHECK(seconds(dropped) == seconds(*model_of("mixtral-8x7b")));
}

TEST_CASE("language models: an impossible model is refused with a sentence") {
  auto m = *model_of("mixtral-8x7b");
  CHECK(!problem_of(m));
  m.experts.chosen = 9;
  CHECK(ringmaster::render(problem_of(m)) == "9 experts cannot be chosen of 8");
  m = *model_of("llama3-8b");
  m.key_value_heads = 5;
  CHECK(ringmaster::render(problem_of(m)) == "32 heads of queries do not divide among 5 of keys and values");
  for (auto imbalance : {0.5, 9.0}) {
    m = *model_of("mixtral-8x7b");
    m.experts.imbalance = imbalance;
    CHECK(ringmaster::render(problem_of(m)).find("the fullest of 8 experts has 1 to 8 times the mean")
          != std::string::npos);
  }
  m = *model_of("llama3-8b");
  m.width = 0;
  CHECK(ringmaster::render(problem_of(m)) == "a feed-forward network's width is at least 1");
}
