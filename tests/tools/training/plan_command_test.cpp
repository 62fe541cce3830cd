#include "tools/training/plan_command.hpp"

#include "runtime/text/json_value.hpp"
#include "runtime/training/search/strategy_search.hpp"
#include "tests/support/captured_command.hpp"
#include "tools/simulate/simulate_command.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

outcome plan(const std::vector<std::string>& args) {
  return run_command(plan_command(), args);
}

outcome simulated(const std::vector<std::string>& args) {
  return run_command(simulate_command(), args);
}

std::string plan_refusal(const std::vector<std::string>& args) {
  auto result = plan(args);
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  return result.err;
}

const json_value& member(const json_value& x, const std::string& name) {
  for (size_t i = 0; i < x.keys.size(); ++i)
    if (x.keys[i].name == name)
      return x.entries[i];
  FAIL("there is no member " << name);
  return x;
}

} // namespace

TEST_CASE("plan: the ten best, why the others lose, the simulated best and the front") {
  std::vector<std::string> args{"--model", "gpt3-13b", "--gpus=32", "--global-batch=128"};
  auto text = plan(args);
  CHECK(text.code == 0);
  for (auto* part : {"gpt3-13b (12.9 billion parameters) on 32 x a100-80g", "simulated, and its peak",
                     "The Pareto front of time and memory"})
    CHECK(text.out.find(part) != std::string::npos);
  args.push_back("--json");
  auto object = plan(args);
  auto json = parse_json(object.out);
  REQUIRE(json.engaged());
  CHECK(member(*json, "best").entries.size() == 10);
  auto& best = member(*json, "best").entries.front();
  auto closed = member(best, "time_s").number, full = member(best, "simulated_time_s").number;
  CHECK(std::abs(full / closed - 1) < 0.05);
  CHECK(plan(args).out == object.out);
}

TEST_CASE("plan: under the lab's costs every strategy is searched, and plain data parallel stands beside the best") {
  auto result = plan({"--cost-model=lab", "--ranks=8", "--layers=16", "--global-batch=256", "--json"});
  CHECK(result.code == 0);
  auto json = parse_json(result.out);
  REQUIRE(json.engaged());
  auto& best = member(*json, "best").entries;
  REQUIRE(best.size() == 10);
  CHECK(member(best[0], "time_s").number <= member(member(*json, "plain"), "time_s").number);
  for (size_t i = 1; i < best.size(); ++i)
    CHECK(member(best[i - 1], "time_s").number <= member(best[i], "time_s").number);
}

TEST_CASE("plan: a bound of the search is never above what is simulated, and hides nothing") {
  struct world {
    uint32_t layers;
    uint64_t batch;
    uint32_t ranks;
  };
  auto same = [](const std::vector<training::searched>& a, const std::vector<training::searched>& b, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      CHECK(a[i].time == b[i].time);
      CHECK(a[i].peak_memory == b[i].peak_memory);
    }
  };
  for (auto* costs : {&training::lab_costs(), &training::puzzle_costs()})
    for (auto [layers, batch, ranks] :
         {world{8, 32, 4}, {8, 84, 4}, {5, 12, 1}, {1, 2, 1}, {17, 8, 4}, {64, 2, 2}, {64, 6, 6}, {64, 8, 8}}) {
      CAPTURE(layers);
      CAPTURE(ranks);
      auto search = [&](uint64_t memory, size_t count) {
        return training::search_strategies(layers, batch, ranks, *costs, memory, count);
      };
      auto all = search(UINT64_MAX, 100'000),
           found = search(UINT64_MAX, 10); // as many best as candidates: all simulated
      CHECK(all.simulated == all.candidates);
      for (auto& x : all.best) {
        CHECK(x.bound.time <= x.time * (1 + 1e-9));
        CHECK(x.bound.memory <= x.peak_memory);
      }
      CHECK(found.open == 0);
      REQUIRE(found.pareto.size() == all.pareto.size());
      same(found.pareto, all.pareto, all.pareto.size());
      same(found.best, all.best, found.best.size());
      for (auto& x : all.pareto) // where no more is allowed than it takes, it is the best
        same(search(x.peak_memory, 1).best, {x}, 1);
    }
}

TEST_CASE("plan: bad input gets a sentence") {
  CHECK(plan_refusal({"--global-batch=8"})
        == "ringmaster plan: --gpus is missing: say how many, such as --gpus 1024\n");
  CHECK(plan_refusal({"--gpus=8"}).find("--global-batch is missing") != std::string::npos);
  CHECK(plan_refusal({"--gpus=0", "--global-batch=8"}).find("\"0\" is not an integer from 1") != std::string::npos);
  CHECK(plan_refusal({"--model=gpt5", "--gpus=8", "--global-batch=8"})
          .find("there is no model \"gpt5\"; there are: gpt2-117m")
        != std::string::npos);
  CHECK(plan_refusal({"--system=a200", "--gpus=8", "--global-batch=8"}).find("there is no system and no file \"a200\"")
        != std::string::npos);
  CHECK(plan_refusal({"--cost-model=lab", "--ranks=8", "--global-batch=8"}).find("--layers is missing")
        != std::string::npos);
  CHECK(plan_refusal({"--cost-model=lab", "--ranks=8", "--layers=8", "--global-batch=8", "--system=a100-80g"})
        == "ringmaster plan: --system is of a transformer, not of --cost-model lab\n");
  auto large = plan({"--model=megatron-1t", "--gpus=8", "--global-batch=64"});
  CHECK(large.code == 1);
  CHECK(large.out.find("None fits.") != std::string::npos);
}

TEST_CASE("simulate validate: prints what was calibrated on apart from what was held out") {
  const std::string data = std::string{RINGMASTER_SOURCE_DIR} + "/bench/data/a100_iterations";
  auto result = simulated({"validate", "--data", data});
  CHECK(result.code == 0);
  for (auto* part : {"single.csv, calibrated on           72", "single.csv, held out                72",
                     "multi.csv, held out", "megatron-22b   full recomputation", "mean of the deviations"})
    CHECK(result.out.find(part) != std::string::npos);
  CHECK(simulated({"validate", "--data=nowhere"}).code == 1);
  CHECK(simulated({"validate", "--system=nowhere"}).code == 2);
}

TEST_CASE("simulate memory: ZeRO's and the activations' formulas") {
  auto result = simulated({"memory", "--parameters=7.5e9", "--ranks=64"});
  CHECK(result.code == 0);
  for (auto* part : {"120.0", "31.4", "16.6", "1.9"})
    CHECK(result.out.find(part) != std::string::npos);
  CHECK(parse_json(simulated({"memory", "--model=megatron-22b", "--ranks=8", "--tensor=8", "--json"}).out).engaged());
  CHECK(simulated({"memory", "--parameters=many"}).code == 2);
}
