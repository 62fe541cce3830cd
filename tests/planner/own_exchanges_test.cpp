// The closed form against programs whose own operations pass keys around and take positions to experts: what a plan's
// simulation has in a layer's time is simulated message by message.
#include "planner/costs/transformer_costs.hpp"

#include "tests/planner/drawn_plans.hpp"

#include <map>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// What a strategy is given for a plan, of all its ranks.
model model_of_plan(const known_strategy& which, const drawn_plan& x) {
  auto& how = x.how;
  model trained{.layers = x.trained.layers,
                .global_batch = how.global_batch,
                .micro_batch = how.micro_batch,
                .parallel = how,
                .blocks = how.again != recomputation::full};
  const auto places = places_of(x.trained, how, needs_of(which, trained));
  trained.layers = places.count();
  trained.dense_first = places.dense_first();
  return trained;
}

/// Nothing where the strategy cannot run it.
std::optional<agreement> own_exchanges_agreement_of(std::string_view strategy, const drawn_plan& x) {
  auto* which = strategy_of(strategy);
  const auto trained = model_of_plan(*which, x);
  if (which->check(trained, x.how.devices()))
    return {};
  const auto costs = transformer_costs(x.trained, x.on, x.how, needs_of(*which, trained));
  return agreement_with(*which, trained, x.how.devices(), *costs, x);
}

/// A model on H100s that share its sequences of 8,192 positions.
drawn_plan shared_sequence(std::string_view name, uint32_t ranks) {
  drawn_plan x{*model_of(name), *system_of("h100-80g"), {}};
  x.trained.sequence = 8192;
  x.how.cp = ranks;
  x.how.as_simulated = true;
  return x;
}

/// A plan for a model whose dispatch hides wherever it can: what launching in pieces takes, no program shows.
drawn_plan hiding_plan(const char* name, const char* system) {
  drawn_plan x{*model_of(name), *system_of(system), {}};
  x.on.paired_launches = 1;
  return x;
}

/// Seconds of each such operation of rank 0 in a step, by layer.
std::multimap<uint32_t, double> seconds_of(op what, std::string_view strategy, const drawn_plan& x) {
  auto* which = strategy_of(strategy);
  const auto trained = model_of_plan(*which, x);
  const auto costs = transformer_costs(x.trained, x.on, x.how, needs_of(*which, trained));
  std::multimap<uint32_t, double> result;
  for (auto& each : outcome_of(strategy, trained, x.how.devices(), *costs, true).events)
    if (each.rank == 0 && each.what == what)
      result.emplace(each.layer, each.duration);
  REQUIRE(!result.empty());
  return result;
}

} // namespace

TEST_CASE("own exchanges: 120 drawn plans with context and experts take what the closed form says, 5 % and 3 %") {
  std::mt19937 random{20261128};
  std::array<uint32_t, 3> compared{}; // with context, with experts, with both
  for (size_t drawn = 0; compared[0] + compared[1] + compared[2] < 120; ++drawn) {
    REQUIRE(drawn < 5000);
    const auto x = draw(random, {"1f1b"}, {"zero0", "zero1"});
    const bool hides = x.how.ep > 1 && x.how.paired_part() > 0; // behind another micro-batch, as no box does
    const bool large = x.how.devices() > 32 || uint64_t{x.how.micro_batches()} * x.trained.layers > 1000;
    if (x.how.cp * x.how.ep == 1 || hides || large)
      continue;
    const auto found = own_exchanges_agreement_of("3d", x);
    if (!found)
      continue;
    ++compared[x.how.ep == 1 ? 0 : x.how.cp == 1 ? 1 : 2];
    CAPTURE(text_of(x));
    CHECK(std::abs(found->time - 1) < 0.05);
    CHECK(std::abs(found->memory - 1) < 0.03);
  }
  for (auto count : compared)
    CHECK(count > 10);
}

TEST_CASE(
  "own exchanges: positions that go to experts beside another micro-batch take what the closed form says, 5 %") {
  for (auto* name : {"qwen3-30b-a3b", "deepseek-v3", "mixtral-8x7b", "gpt-oss-120b"})
    for (auto* system : {"h100-80g", "b200"})
      for (uint32_t experts : {2, 8})
        for (uint32_t micro_batches : {4, 16}) {
          auto x = hiding_plan(name, system);
          x.how.dp = 8;
          x.how.ep = experts;
          x.how.global_batch = micro_batches * x.how.dp;
          x.how.overlapped = true;
          CAPTURE(text_of(x));
          const auto found = own_exchanges_agreement_of("expert", x);
          REQUIRE(found.has_value());
          CHECK(std::abs(found->time - 1) < 0.05);
          CHECK(found->memory < 1); // the program has two micro-batches forward at once, Megatron-LM one
          CHECK(found->memory > 0.8);
        }
}

TEST_CASE("own exchanges: blocks of a forward beside a backward hide what the closed form says, 5 %") {
  for (auto* name : {"qwen3-30b-a3b", "deepseek-v3", "mixtral-8x7b", "gpt-oss-120b"})
    for (auto* system : {"h100-80g", "b200"})
      for (uint32_t experts : {2, 8})
        for (uint32_t stages : {2, 4})
          for (uint32_t turns : {2, 6}) // of as many micro-batches as there are stages
            for (auto schedule : {pipeline_schedule::interleaved_1f1b, pipeline_schedule::dualpipe}) {
              auto x = hiding_plan(name, system);
              const bool both_ways = schedule == pipeline_schedule::dualpipe;
              x.trained.layers = 16;
              x.how.set_degrees(1, 8, stages);
              x.how.ep = experts;
              x.how.global_batch = turns * stages * x.how.dp;
              x.how.schedule = schedule;
              x.how.chunks = 2;
              x.how.again = turns == 2 && stages == 2 ? recomputation::full : recomputation::none;
              CAPTURE(text_of(x));
              const auto found = own_exchanges_agreement_of(both_ways ? "dualpipe" : "3d", x);
              REQUIRE(found.has_value());
              CHECK(std::abs(found->time - 1) < 0.05);
              CHECK(std::abs(found->memory - 1) < (both_ways ? 0.07 : 0.03));
            }
}

TEST_CASE("own exchanges: a hop of keys takes its bytes' time at least, also where attention has a window") {
  const auto x = shared_sequence("gpt-oss-120b", 8);
  const auto block = 2.0 * 8192 / 8 * x.trained.key_value_heads * x.trained.key_and_value_size();
  for (auto [layer, seconds] : seconds_of(op::receive, "context", x)) {
    CAPTURE(layer);
    CHECK(seconds >= block / x.on.host_bandwidth + x.on.host_latency_s);
    CHECK(seconds < 2 * (block / x.on.host_bandwidth + x.on.host_latency_s));
  }
}

TEST_CASE("own exchanges: keys that are gathered go around once at the links' pace, and come in one piece") {
  double before = 0;
  for (uint32_t ranks : {4, 8}) {
    CAPTURE(ranks);
    const auto x = shared_sequence("llama3-8b", ranks);
    const auto all = 2.0 * 8192 * x.trained.key_value_heads * x.trained.key_and_value_size();
    const auto bytes_time = (ranks - 1) * all / ranks / x.on.host_bandwidth;
    for (auto [layer, seconds] : seconds_of(op::all_gather, "context-gather", x)) {
      CHECK(seconds > bytes_time);
      CHECK(seconds < bytes_time + ranks * 10e-6);
    }
    const auto attend = seconds_of(op::attend, "context-gather", x).begin()->second;
    if (before > 0) // half of the queries, all of the keys
      CHECK(attend / before == doctest::Approx(0.5).epsilon(0.02));
    before = attend;
  }
}
