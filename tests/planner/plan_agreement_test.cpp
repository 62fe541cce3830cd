// The closed form against the simulator, over plans that are drawn from all that a search tries; and its curves.
#include "planner/costs/transformer_costs.hpp"
#include "planner/estimates/exchange_times.hpp"

#include "tests/planner/drawn_plans.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <random>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Nothing if no strategy can run it.
std::optional<agreement> agreement_of(const drawn_plan& x) {
  auto& how = x.how;
  auto* which = strategy_of(name_of(how.schedule));
  model trained{.layers = places_of(x.trained, how),
                .global_batch = how.global_batch,
                .micro_batch = how.micro_batch,
                .parallel = how.simulated()};
  if (which->check(trained, how.shape().size()))
    return {};
  auto costs = transformer_costs(x.trained, x.on, how);
  return agreement_with(*which, trained, how.shape().size(), *costs, x);
}

/// The same of one that shares weights fully, by two ranks of each group, and of two groups, that stand for all.
agreement sharded_agreement_of(const drawn_plan& x) {
  auto& how = x.how;
  const auto groups = std::min(how.replicas() / how.shard_ranks, 2u), ranks = 2 * groups;
  auto* which = strategy_of(groups == 1 ? "fsdp" : "hsdp");
  model trained{.layers = x.trained.layers,
                .global_batch = uint64_t{how.micro_batches()} * how.micro_batch * ranks,
                .micro_batch = how.micro_batch,
                .parallel = {.shard_ranks = 2}};
  auto costs = transformer_costs(x.trained, x.on, how, mesh{.data = ranks});
  return agreement_with(*which, trained, ranks, *costs, x);
}

constexpr uint64_t work_max = 8000; ///< Layers times micro-batches: what is simulated in a moment.

/// Checks the agreement within these limits; false: no strategy can run it.
bool agrees(const drawn_plan& x, double time, double memory) {
  const auto found = agreement_of(x);
  if (!found)
    return false;
  CAPTURE(text_of(x));
  CHECK(std::abs(found->time - 1) < time);
  CHECK(std::abs(found->memory - 1) < memory);
  return true;
}

/// All simulated pipeline plans are within 5 % in time and 3 % in memory.
void check_pipelines(
  size_t plans, bool with_modules, const std::function<void(plan_question&)>& change = [](auto&) {}) {
  std::mt19937 random{13};
  for (size_t compared = 0, drawn = 0; compared < plans; ++drawn) {
    REQUIRE(drawn < 10 * plans);
    const auto x = draw(random, {"1f1b", "interleaved", "gpipe", "zb-h1", "zb-h2", "zb-v", "dualpipe"},
                        {"zero0", "zero1"}, with_modules, change);
    if (x.how.devices() == 1 || uint64_t{x.how.micro_batches()} * x.trained.layers > work_max)
      continue;
    compared += agrees(x, 0.05, 0.03);
  }
}

} // namespace

TEST_CASE("plan agreement: 500 drawn plans take simulated what the closed form says, 5 % in time and 3 % in memory") {
  check_pipelines(500, false);
}

TEST_CASE("plan agreement: with fewer micro-batches than stages the closed form is within 7 %, and memory within 3 %") {
  std::mt19937 random{1};
  const auto systems = std::to_array<const char*>({"a100-80g", "h100-80g", "b200", "gb200-nvl72"});
  const auto models = std::to_array<const char*>({"llama3-8b", "gpt3-13b", "mixtral-8x7b", "gpt-oss-120b",
                                                  "deepseek-v3"});
  for (size_t compared = 0; compared < 100;) {
    plan_question asked{*model_of(models[random() % models.size()]),
                        *system_of(systems[random() % systems.size()]),
                        8u << random() % 4,
                        4u << random() % 3,
                        {}};
    asked.system.memory_bytes = 1e15; // all fit
    asked.filter.only = {"1f1b", random() % 2 == 0 ? "zero0" : "zero1"};
    asked.filter.pp = {4, 32};
    const auto found = plan_transformer(asked, 100'000);
    if (found.best.empty())
      continue;
    const drawn_plan x{asked.trained, asked.system, found.best[random() % found.best.size()].how};
    const auto agrees = x.how.micro_batches() < x.how.pp ? agreement_of(x) : std::nullopt;
    if (!agrees)
      continue;
    ++compared;
    CAPTURE(text_of(x));
    CHECK(std::abs(agrees->time - 1) < 0.07);
    CHECK(std::abs(agrees->memory - 1) < 0.03);
  }
}

TEST_CASE("plan agreement: and so do those of models with modules that predict further tokens") {
  check_pipelines(100, true);
}

TEST_CASE("plan agreement: and so do those whose activations are most of what they hold, also on stages that differ") {
  check_pipelines(100, false, [](plan_question& x) {
    x.trained.sequence = 32768;
    x.filter.recomputations = {recomputation::full};
    x.filter.offloads_states = true;
    x.filter.gradient_bytes = 2;
    x.filter.pp = {4, UINT32_MAX};
  });
}

TEST_CASE("plan agreement: and so do windows in any period, linear attention, experts in every second layer") {
  uint32_t drawn = 0;
  check_pipelines(120, false, [&](plan_question& asked) {
    auto& m = asked.trained = *model_of(drawn % 2 == 0 ? "llama3-8b" : "qwen3-30b-a3b");
    m.window = 1024;
    m.full_every = std::array{0u, 4u, 6u}[drawn / 2 % 3];
    switch (drawn++ / 6 % 5) {
      case 0: break;
      case 1: m.chunked = true; break;
      case 2: m.windows_from = m.layers / 2, m.full_every = 0; break;
      case 3:
        m.linear = {.key_heads = 16, .value_heads = 32, .key_size = 128, .value_size = 128, .convolution = 4};
        m.gated_attention = true;
        break;
      default: // every second layer has experts
        m.experts.every = m.experts.count > 0 ? 2 : 1;
        m.width = 4 * m.hidden;
        m.norms = 4;
        break;
    }
  });
}

TEST_CASE("plan agreement: 500 drawn plans that share weights fully, 3 % in time and in memory, with modules or not") {
  std::mt19937 random{20261123};
  for (size_t compared = 0, drawn = 0; compared < 500; ++drawn) {
    REQUIRE(drawn < 5000);
    const auto x = draw(random, {}, {"fsdp", "hsdp"}, true);
    if (x.how.shard_ranks == 0 || uint64_t{x.how.micro_batches()} * x.trained.layers > work_max)
      continue;
    ++compared;
    const auto found = sharded_agreement_of(x);
    CAPTURE(text_of(x));
    CHECK(std::abs(found.time - 1) < 0.03);
    CHECK(std::abs(found.memory - 1) < 0.03);
  }
}

TEST_CASE("plan agreement: no step is shorter than its activations are on a slow network's way to a stage") {
  for (auto* system : {"a100-80g", "h100-80g", "gb200-nvl72"})
    for (auto* schedule : {"1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe"})
      for (uint32_t stages : {2, 4, 8}) {
        plan_question asked{*model_of("llama3-8b"), *system_of(system), 8 * stages, 32 * stages, {}};
        asked.system.memory_bytes = 1e15;
        asked.system.hop_bandwidth /= 100; // a layer's work is long past then
        asked.system.devices_per_host = 8;
        asked.filter.only = {schedule, "zero1"};
        asked.filter.pp = {stages, stages};
        asked.filter.dp = {8, 8};
        const auto found = plan_transformer(asked, 1).best;
        REQUIRE(!found.empty());
        const drawn_plan x{asked.trained, asked.system, found.front().how};
        CAPTURE(text_of(x));
        const auto on_the_way = x.how.micro_batches() * messages_of(x.how) * hop_time(x.trained, x.on, x.how);
        const auto estimate = estimate_iteration(x.trained, x.on, x.how).seconds;
        CHECK(estimate > on_the_way);
        CHECK(estimate / agreement_of(x)->time > on_the_way);
      }
}

TEST_CASE("plan agreement: the rings of shards go beside computing, not beside what has the same cards") {
  for (auto* system : {"b200", "h100-80g"})
    for (uint32_t ranks : {64, 128}) {
      drawn_plan x{*model_of("gpt-oss-120b"), *system_of(system), {}};
      x.trained.sequence = 8192;
      x.how.set_degrees(2, ranks, 1);
      x.how.shard_ranks = x.how.global_batch = ranks;
      x.how.ep = 64;
      x.how.sequence_parallel = x.how.overlapped = true;
      const auto estimate = estimate_iteration(x.trained, x.on, x.how);
      CAPTURE(text_of(x));
      REQUIRE(estimate.hidden.gradients > 0);
      const auto rings = estimate.exposed.gradients + estimate.hidden.gradients;
      CHECK(estimate.seconds > rings + estimate.exposed.layers.experts);
      CHECK(std::abs(sharded_agreement_of(x).time - 1) < 0.03);
    }
}

TEST_CASE("plan agreement: whole layers are what a device holds where weights are spread thin") {
  for (auto* name : {"gpt3-13b", "deepseek-v3"})
    for (uint32_t batch : {512, 1024}) {
      plan_question asked{*model_of(name), *system_of("h100-80g"), 512, batch, {}};
      asked.system.memory_bytes = 1e15;
      asked.filter.only = {"fsdp"};
      asked.filter.tp = asked.filter.cp = {1, 1};
      asked.filter.ep = {1, 256}; // from 32 on DeepSeek's dense first layers hold the most
      for (auto& found : plan_transformer(asked, 40).best) {
        const drawn_plan x{asked.trained, asked.system, found.how};
        if (x.how.shard_ranks == 0 || x.how.micro_batches() > 2)
          continue;
        CAPTURE(text_of(x));
        CHECK(std::abs(sharded_agreement_of(x).memory - 1) < 0.03);
      }
    }
}

TEST_CASE(
  "plan agreement: weights that are gathered ahead take simulated what the closed form says, on all ranks and on two") {
  for (auto* name : {"llama3-8b", "gpt3-13b"})
    for (uint32_t shard : {64, 8})
      for (auto again : {recomputation::none, recomputation::full}) {
        CAPTURE(name);
        CAPTURE(shard);
        const auto m = *model_of(name);
        const auto on = *system_of("h100-80g");
        training_setting how;
        how.set_degrees(1, 64, 1);
        how.global_batch = 128;
        how.shard_ranks = shard;
        how.overlapped = true;
        how.again = again;
        model trained{.layers = m.layers, .global_batch = 128, .micro_batch = 1, .parallel = {.shard_ranks = shard}};
        auto costs = transformer_costs(m, on, how);
        auto* which = strategy_of(shard == 64 ? "fsdp" : "hsdp");
        auto done = simulate([&](rank& self) { return which->run(self, trained); }, trained, 64, *costs);
        REQUIRE_MESSAGE(done.engaged(), render(done.error()));
        const auto estimate = estimate_iteration(m, on, how);
        CHECK(std::abs(estimate.seconds / done->end - 1) < 0.03);
        CHECK(std::abs(estimate.memory_bytes / static_cast<double>(peak_memory_of(*done)) - 1) < 0.03);
        // Two ranks, of two groups, stand for all of them.
        const auto ranks = shard == 64 ? 2u : 4u;
        trained.global_batch = uint64_t{how.micro_batches()} * ranks;
        trained.parallel.shard_ranks = 2;
        auto costs_of_two = transformer_costs(m, on, how, mesh{.data = ranks});
        auto by_two = simulate([&](rank& self) { return which->run(self, trained); }, trained, ranks, *costs_of_two);
        REQUIRE_MESSAGE(by_two.engaged(), render(by_two.error()));
        CHECK(by_two->end == doctest::Approx(done->end).epsilon(1e-9));
        CHECK(static_cast<double>(peak_memory_of(*by_two))
              == doctest::Approx(static_cast<double>(peak_memory_of(*done))).epsilon(1e-6));
      }
}

TEST_CASE(
  "plan agreement: over sequences, devices and batches the best plan's rate has no step that nothing explains") {
  plan_question asked{*model_of("llama3-70b"), *system_of("h100-80g"), 512, 512, {}};
  auto rate = [&] { // model FLOPs of a device and a second
    const auto found = plan_transformer(asked, 1);
    REQUIRE(!found.best.empty());
    return flops_of(asked.trained, asked.global_batch) / found.best.front().cost.seconds / asked.devices;
  };
  auto check_curve = [&](std::initializer_list<uint32_t> values, auto&& set, double most) {
    double before = 0;
    for (auto x : values) {
      CAPTURE(x);
      set(x);
      const auto now = rate();
      if (before > 0)
        CHECK(std::abs(std::log(now / before)) < most);
      before = now;
    }
  };
  SUBCASE("sequences of the same tokens") {
    check_curve(
      {2048, 4096, 8192, 16384, 32768, 65536, 131072},
      [&](uint32_t s) {
        asked.trained.sequence = s;
        asked.global_batch = 4'194'304 / s;
      },
      0.15);
  }
  SUBCASE("devices with the batch that grows with them") {
    check_curve(
      {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}, [&](uint32_t n) { asked.global_batch = asked.devices = n; },
      0.15);
  }
  SUBCASE("batches") {
    check_curve(
      {512, 1024, 2048, 4096, 8192}, [&](uint32_t b) { asked.global_batch = b; }, 0.15);
  }
}

TEST_CASE("plan agreement: the last stage's logits, and chunks that are not alike, count as they are simulated") {
  const auto check = [](const char* model, std::initializer_list<const char*> only, plan_question asked) {
    asked.trained = *model_of(model);
    asked.system = *system_of("a100-80g");
    asked.system.memory_bytes = 1e15;
    asked.filter.only.assign(only.begin(), only.end());
    asked.filter.cp = asked.filter.tp = asked.filter.dp = {1, 1};
    asked.devices = asked.filter.pp.least;
    uint32_t compared = 0;
    for (auto& found : plan_transformer(asked, 40).best)
      compared += agrees({asked.trained, asked.system, found.how}, 0.02, 0.01);
    CHECK(compared > 0);
  };
  plan_question slow_end;
  slow_end.global_batch = 96;
  slow_end.filter.micro_batches = {6};
  slow_end.filter.pp = {8, 8};
  check("gpt-oss-120b", {"zb-h1", "zero1"}, slow_end);
  check("gpt-oss-120b", {"zb-h2", "zero1"}, slow_end);
  plan_question uneven;
  uneven.global_batch = 64;
  uneven.filter.micro_batches = {4};
  uneven.filter.pp = {4, 4};
  uneven.filter.chunks = {3, 3};
  check("llama3-8b", {"interleaved", "zero0"}, uneven);
}
