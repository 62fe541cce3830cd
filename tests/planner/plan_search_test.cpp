// Which plans are candidates.
#include "planner/costs/transformer_costs.hpp"
#include "planner/plans/plan_advice.hpp"
#include "planner/plans/plan_shapes.hpp"
#include "planner/plans/undivided.hpp"

#include "messages/errc.hpp"
#include "tests/planner/small_gpt.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Every candidate: all of them fit.
std::vector<planned> candidates(const language_model& m, uint32_t devices, uint32_t global_batch) {
  plan_question asked{m, known_systems().front(), devices, global_batch};
  asked.filter.cp = {1, 1};
  const auto found = plan_transformer(asked, 1'000'000);
  CHECK(found.evaluated == found.best.size());
  return found.best;
}

/// The schedules of `stages` stages, without data parallelism, for that number of micro-batches.
std::set<std::string> schedules(uint32_t stages, uint32_t micro_batches) {
  std::set<std::string> result;
  for (auto& x : candidates(small_gpt, stages, micro_batches))
    if (x.how.pp == stages && x.how.micro_batch == 1)
      result.insert(std::string{name_of(x.how.schedule)}
                    + (x.how.schedule == pipeline_schedule::interleaved_1f1b ? std::to_string(x.how.chunks) : ""));
  return result;
}

using names = std::set<std::string>;

} // namespace

TEST_CASE("planner: each schedule is a candidate from its least number of micro-batches on") {
  CHECK(schedules(2, 1) == names{"1f1b"});
  CHECK(schedules(2, 2) == names{"1f1b", "interleaved2", "interleaved4", "interleaved5", "zb-h1"});
  CHECK(schedules(2, 3) == names{"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v"});
  CHECK(schedules(2, 4)
        == names{"1f1b", "dualpipe", "gpipe", "interleaved2", "interleaved4", "interleaved5", "zb-h1", "zb-h2",
                 "zb-v"});
  CHECK(schedules(2, 5) == names{"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v"});
  CHECK(schedules(4, 3) == names{"1f1b"});
  CHECK(schedules(4, 4) == names{"1f1b", "interleaved2", "zb-h1"});
  CHECK(schedules(4, 6) == names{"1f1b", "gpipe", "zb-h1"});
  CHECK(schedules(4, 7) == names{"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v"});
  CHECK(schedules(4, 8) == names{"1f1b", "dualpipe", "gpipe", "interleaved2", "zb-h1", "zb-h2", "zb-v"});
  CHECK(schedules(8, 15) == names{"1f1b", "gpipe", "zb-h1", "zb-h2"}); // one layer a stage cannot be halved
  CHECK(schedules(1, 4) == names{"1f1b"});
}

TEST_CASE("planner: fully sharded plans that are named stand beside schedules, ZeRO's stages within them") {
  using enum pipeline_schedule;
  auto taken_by = [](std::vector<std::string> only, std::vector<std::string> excluded = {}) {
    plan_filter filter;
    filter.only = std::move(only);
    filter.excluded = std::move(excluded);
    names result;
    for (auto schedule : {one_f_one_b, interleaved_1f1b})
      for (auto sharding : {"zero0", "zero1", "fsdp", "hsdp"})
        if (filter.takes(schedule, sharding, sharding[0] != 'z')
            && (std::string_view{sharding}.starts_with("zero") || schedule == one_f_one_b))
          result.insert((sharding[0] == 'z' ? std::string{name_of(schedule)} + "+" : "") + sharding);
    return result;
  };
  const names interleaved{"interleaved+zero0", "interleaved+zero1"}, plain{"1f1b+zero0", "1f1b+zero1"};
  auto with = [](names a, const names& b) {
    a.insert(b.begin(), b.end());
    return a;
  };
  CHECK(taken_by({}) == with(with(interleaved, plain), {"fsdp", "hsdp"}));
  CHECK(taken_by({"interleaved"}) == interleaved);
  CHECK(taken_by({"1f1b"}) == plain);
  CHECK(taken_by({"fsdp"}) == names{"fsdp"});
  CHECK(taken_by({"fsdp", "interleaved"}) == with(interleaved, {"fsdp"}));
  CHECK(taken_by({"1f1b", "hsdp"}) == with(plain, {"hsdp"}));
  CHECK(taken_by({"zero1"}) == names{"1f1b+zero1", "interleaved+zero1"});
  CHECK(taken_by({"interleaved", "zero1", "fsdp"}) == names{"interleaved+zero1", "fsdp"});
  CHECK(taken_by({"zero1", "hsdp"}) == names{"1f1b+zero1", "interleaved+zero1", "hsdp"});
  CHECK(taken_by({"fsdp", "interleaved"}, {"zero0"}) == names{"interleaved+zero1", "fsdp"});
  CHECK(taken_by({}, {"fsdp", "hsdp", "interleaved"}) == plain);
  CHECK(taken_by({}, {"1f1b"}) == with(interleaved, {"fsdp", "hsdp"})); // on one stage there is no schedule
  CHECK(taken_by({"1f1b"}, {"1f1b"}).empty());
}

TEST_CASE("planner: every way of sharing that divides is a candidate, once, and its strategy takes it") {
  for (uint32_t devices : {1, 2, 3, 4, 6, 8})
    for (uint32_t global_batch : {1, 2, 3, 4, 6, 12}) {
      CAPTURE(devices);
      CAPTURE(global_batch);
      std::set<std::vector<uint32_t>> seen;
      std::set<std::vector<uint32_t>> shapes;
      for (auto& [x, cost] : candidates(small_gpt, devices, global_batch)) {
        CHECK(x.shape().size() == devices);
        CHECK(small_gpt.heads % x.tp == 0);
        CHECK(x.micro_batches() * x.micro_batch * x.dp == global_batch);
        CHECK((!x.sequence_parallel || x.tp > 1));
        CHECK((x.zero == 0 || x.dp > 1));
        shapes.insert({x.tp, x.dp, x.pp});
        CHECK(seen
                .insert({x.tp, x.dp, x.pp, x.micro_batch, x.chunks, x.zero, static_cast<uint32_t>(x.schedule),
                         static_cast<uint32_t>(x.again), x.sequence_parallel, x.shard_ranks})
                .second);
        if (x.shard_ranks > 0) {
          CHECK(x.pp == 1);
          continue;
        }
        model trained{places_of(small_gpt, x), x.global_batch, x.micro_batch, x.simulated()};
        auto refused = strategy_of(name_of(x.schedule))->check(trained, devices);
        CHECK_MESSAGE(!refused, render(refused));
      }
      size_t expected = 0;
      for (uint32_t t : {1, 2, 4})         // what divides the heads
        for (uint32_t p : {1, 2, 3, 4, 8}) // 8 layers in 3 stages: the embedding and the logits have places, too
          expected += devices % (t * p) == 0 && global_batch % (devices / (t * p)) == 0 ? 1 : 0;
      CHECK(shapes.size() == expected);
    }
}

TEST_CASE("planner: more tensor and context ranks than are of use are tried where their number is named") {
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 128, 256};
  auto most = [&] {
    std::pair<uint32_t, uint32_t> result{0, 0};
    for (auto& each : shapes_of(asked))
      result = {std::max(result.first, each.tp), std::max(result.second, each.cp)};
    return result;
  };
  CHECK(most() == std::pair{16u, 16u}); // blocks of 256 positions
  asked.filter.tp = {4, 32};
  asked.filter.cp = {1, 32};
  CHECK(most() == std::pair{32u, 32u});
  asked.filter.cp = {32, UINT32_MAX};
  CHECK(most().second == 32);
  asked.filter.cp = {};
  asked.filter.tp = {4, UINT32_MAX};
  CHECK(most().first == 16);
  asked.filter.tp = {32, UINT32_MAX};
  CHECK(most().first == 32);
}

TEST_CASE("planner: a number of chunks selects the schedules that have this number") {
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 8, 64};
  auto schedules = [&](number_range chunks) {
    asked.filter.chunks = chunks;
    std::set<pipeline_schedule> result;
    for (auto& x : plan_transformer(asked, 10'000).best) {
      CHECK(chunks.contains(x.how.chunks));
      result.insert(x.how.schedule);
    }
    return result;
  };
  using enum pipeline_schedule;
  CHECK(schedules({4, 8}) == std::set{interleaved_1f1b});
  CHECK(schedules({2, 2}) == std::set{interleaved_1f1b, zb_v, dualpipe});
  CHECK(schedules({1, 1}) == std::set{one_f_one_b, all_forwards_first, zb_h1, zb_h2});
}

TEST_CASE("planner: a plan's cost is what its closed form says of it alone, with experts and shards, too") {
  plan_question asked{*model_of("qwen3-30b-a3b"), *system_of("b200"), 16, 64, {}};
  bool sharded_experts = false;
  for (auto only : {"1f1b", "fsdp"}) {
    asked.filter.only = {only};
    const auto found = plan_transformer(asked, 200);
    REQUIRE(!found.best.empty());
    for (auto* list : {&found.best, &found.pareto, &found.too_large})
      for (auto& x : *list) {
        CHECK(x.cost.seconds == estimate_iteration(asked.trained, asked.system, x.how).seconds);
        sharded_experts |= x.how.shard_ranks > 0 && x.how.ep > 1 && x.how.micro_batches() > 1;
      }
  }
  CHECK(sharded_experts);
}

TEST_CASE("planner: what is off-loaded must fit in the host's memory") {
  plan_question asked{*model_of("llama3-70b"), *system_of("h100-80g"), 16, 16, {}};
  asked.filter.offloads_states = true;
  const auto with = plan_transformer(asked);
  REQUIRE(!with.best.empty());
  const auto taken = with.best.front().cost.host_bytes;
  CHECK(taken > 12 * 70e9 / 16); // its share, in 12 bytes a parameter
  CHECK(lack_of(with.best.front(), asked.system).sum() == 0);
  asked.system.host_memory_bytes = 40e9;
  const auto without = plan_transformer(asked);
  CHECK(without.best.empty());
  REQUIRE(!without.smallest.empty());
  const auto lack = lack_of(without.smallest.front(), asked.system);
  CHECK(lack.host == doctest::Approx(without.smallest.front().cost.host_bytes - 40e9));
  asked.filter.offloads_states = false;
  CHECK(plan_transformer(asked).fitting
        == plan_transformer({asked.trained, *system_of("h100-80g"), 16, 16, {}}).fitting);
}

TEST_CASE("planner: what has no finite time is in no list") {
  auto on = *system_of("h100-80g");
  on.network_bandwidth = 0;
  plan_question asked{*model_of("llama3-8b"), on, 16, 32};
  asked.filter.pp = {1, 1};
  const auto found = plan_transformer(asked);
  CHECK(found.endless > 0);
  for (auto* list : {&found.best, &found.pareto, &found.too_large, &found.smallest})
    for (auto& x : *list)
      CHECK(std::isfinite(x.cost.seconds));
}

TEST_CASE("planner: the least number of devices need be no power of two, and none below it fits") {
  plan_question asked{*model_of("llama3-70b"), *system_of("h100-80g"), 8, 64};
  auto fits = [&](uint32_t devices) {
    asked.devices = devices;
    return plan_transformer(asked, 1).fitting > 0;
  };
  CHECK(least_devices(asked) == 16);
  for (uint32_t devices = 1; devices < 16; ++devices)
    CHECK(!fits(devices));
  CHECK(fits(16));
  asked.trained = *model_of("llama3.1-405b");
  CHECK(least_devices(asked) == 96);
  CHECK(!least_devices(asked, [](double) { return false; }));
  asked.filter.dp = asked.filter.tp = asked.filter.cp = {1, 1};
  asked.trained = *model_of("megatron-1t");
  CHECK(least_devices(asked) == 0);
}

TEST_CASE("planner: ZeRO 2 and 3 are candidates without a pipeline, within one only where they are named") {
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 8, 16};
  asked.filter.dp = {2, 2};
  auto some = [&](uint32_t pipeline) {
    asked.filter.pp = {pipeline, pipeline};
    const auto found = plan_transformer(asked, 1'000'000);
    return std::ranges::any_of(found.best, [](auto& x) { return x.how.zero >= 2; });
  };
  CHECK(some(1));
  CHECK_FALSE(some(2));
  asked.filter.only = {"zero3"};
  CHECK(some(2));
}

TEST_CASE("planner: tensor-parallel ranks share the positions where those of a context's rank divide among them") {
  // 8,200 positions: of two context ranks each has 4,100, which divide among 4 and not among 8.
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 16, 64};
  asked.trained.sequence = 8200;
  auto in_sequence = [&](uint32_t tensor, uint32_t context) {
    asked.filter.tp = {tensor, tensor};
    asked.filter.cp = {context, context};
    const auto found = plan_transformer(asked, 1'000'000);
    CHECK(found.evaluated > 0);
    return std::ranges::count_if(found.best, [](auto& x) { return x.how.sequence_parallel; });
  };
  CHECK(in_sequence(8, 1) > 0);
  CHECK(in_sequence(4, 2) > 0);
  CHECK(in_sequence(8, 2) == 0);
}

// Megatron Core refuses others: tokens are dispatched by positions, each of which must have one owner.
TEST_CASE("planner: experts with tensor-parallel ranks come with sequence parallelism alone") {
  plan_question asked{*model_of("mixtral-8x7b"), *system_of("h100-80g"), 16, 64};
  asked.filter.tp = {2, 2};
  const auto with = [&](uint32_t expert, bool in_sequence) {
    asked.filter.ep = {expert, expert};
    const auto found = plan_transformer(asked, 1'000'000);
    return std::ranges::count_if(found.best, [=](auto& x) { return x.how.sequence_parallel == in_sequence; });
  };
  CHECK(with(4, true) > 0);
  CHECK(with(4, false) == 0);
  CHECK(with(1, false) > 0);
}

TEST_CASE("planner: tensor-parallel ranks divide the heads of linear attention, too, and the shared experts' width") {
  plan_question asked{*model_of("qwen3-30b-a3b"), *system_of("h100-80g"), 8, 8};
  auto most = [&] {
    uint32_t result = 0;
    for (auto& each : shapes_of(asked))
      result = std::max(result, each.tp);
    return result;
  };
  CHECK(most() == 8);
  asked.trained.linear = {.key_heads = 4, .value_heads = 32, .key_size = 128, .value_size = 128, .convolution = 4};
  CHECK(most() == 4);
  asked.trained.experts.shared_width = 2;
  CHECK(most() == 2);
}

TEST_CASE("planner: a named sharding that equals another one is found") {
  plan_question asked{*model_of("gpt3-6.7b"), *system_of("b200"), 8, 8};
  auto found = [&] { return plan_transformer(asked, 1'000'000).best.size(); };
  asked.filter.tp = asked.filter.pp = {2, 4};
  asked.filter.dp = {1, 1}; // there is no other rank to share states with
  asked.filter.cp = {1, 1};
  asked.filter.only = {"zero0"};
  const auto plans = found();
  CHECK(plans > 0);
  asked.filter.only = {"zero1"};
  CHECK(found() == plans);
}

TEST_CASE("planner: two chunks a stage for ZB-V may have the embedding and the logits for layers") {
  plan_question asked{*model_of("llama3.1-405b"), *system_of("h100-80g"), 1024, 512};
  asked.filter.tp = {4, 4};
  asked.filter.cp = {1, 1};
  asked.filter.pp = {64, 64};
  asked.filter.only = {"zb-v"};
  CHECK(plan_transformer(asked).fitting > 0); // 126 layers in 128 places
  asked.trained.layers = 125;
  CHECK(plan_transformer(asked).evaluated == 0);
}

TEST_CASE("planner: fewer GPUs are named where they are faster, and are") {
  plan_question asked{*model_of("qwen3-235b-a22b"), *system_of("h100-80g"), 264, 1536};
  const auto found = plan_transformer(asked, 1);
  const auto fewer = faster_on_fewer(asked, found, 1e9);
  CHECK(fewer.devices == 256);
  CHECK(faster_on_fewer(asked, found, fewer.seconds).devices == 0); // simulated, the best may be faster
  asked.devices = 256;
  const auto best = plan_transformer(asked, 1);
  REQUIRE(!best.best.empty());
  CHECK(fewer.seconds == best.best.front().cost.seconds);
  CHECK(fewer.seconds < found.best.front().cost.seconds);
  CHECK(faster_on_fewer(asked, best, 1e9).devices == 0);
}

TEST_CASE("planner: another batch is named where it trains more samples a second, and does") {
  plan_question asked{*model_of("llama3-70b"), *system_of("h100-80g"), 256, 1000};
  const auto found = plan_transformer(asked, 1);
  REQUIRE(!found.best.empty());
  const auto near = faster_batch(asked, found, 1e9);
  CHECK(near.global_batch == 1024);
  CHECK(near.seconds / 1024 < found.best.front().cost.seconds / 1000);
  CHECK(faster_batch(asked, found, near.seconds * 1000 / 1024).global_batch == 0); // simulated, the best may be faster
  asked.global_batch = 1024;
  const auto best = plan_transformer(asked, 1);
  CHECK(near.seconds == best.best.at(0).cost.seconds);
  CHECK(faster_batch(asked, best, 1e9).global_batch == 0); // a power of two
  asked.global_batch = 1536;
  asked.devices = 1024;
  CHECK(faster_batch(asked, plan_transformer(asked, 1), 1e9).global_batch % 1024 == 0);
}

TEST_CASE("planner: domains that groups do not fill are named, where there are several") {
  const auto rack = *system_of("gb200-nvl72"), host = *system_of("h100-80g");
  training_setting how;
  how.set_degrees(1, 64, 9);
  how.ep = 64;
  CHECK(filling_of(how, rack).devices == 64);
  how.ep = 8;
  CHECK(filling_of(how, rack).devices == 0);
  how.set_degrees(16, 4, 9);
  CHECK(filling_of(how, rack).devices == 64);
  CHECK(filling_of(how, host).devices == 0); // 16 lie in two
  how.ep = 48;
  CHECK(filling_of(how, rack).devices == 48);
  how.set_degrees(1, 64, 9);
  how.ep = 64;
  how.shard_ranks = 72;
  CHECK(filling_of(how, rack).devices == 64); // as many share weights as there are replicas
  how.cp = 9;
  how.ep = 8;
  CHECK(filling_of(how, rack).devices == 0);
  how.ep = 64;
  CHECK(filling_of(how, rack).straddles);
  how.shard_ranks = 0;
  how.cp = 1;
  how.set_degrees(16, 4, 1);
  CHECK(filling_of(how, rack).devices == 0); // one domain has all
}

TEST_CASE("planner: in whatever order the parts of a search are run, they find the same") {
  plan_question asked{*model_of("mixtral-8x7b"), *system_of("h100-80g"), 64, 128};
  const auto in_order = plan_transformer(asked);
  plan_search backwards{asked};
  for (auto part = plan_search::parts; part-- > 0;)
    CHECK(backwards.run(part, {}));
  const auto found = backwards.take();
  CHECK(found.evaluated == in_order.evaluated);
  CHECK(found.fitting == in_order.fitting);
  auto check_same = [](const std::vector<planned>& a, const std::vector<planned>& b) {
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i].how.cp == b[i].how.cp);
      CHECK(a[i].how.micro_batch == b[i].how.micro_batch);
      CHECK(a[i].cost.seconds == b[i].cost.seconds);
      CHECK(a[i].cost.memory_bytes == b[i].cost.memory_bytes);
    }
  };
  CHECK(found.best.size() == 10);
  CHECK(found.pareto.size() > 1);
  check_same(found.best, in_order.best);
  check_same(found.others, in_order.others);
  check_same(found.too_large, in_order.too_large);
  check_same(found.pareto, in_order.pareto);
}

TEST_CASE("planner: a part of a search stops after a shape when it is asked to") {
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 64, 128};
  plan_search search{asked};
  CHECK(!search.run(0, [] { return false; }));
  const auto found = search.take();
  CHECK(found.evaluated > 0);
  CHECK(found.evaluated < plan_transformer(asked).evaluated);
}

TEST_CASE("planner: what does not divide what is said of every degree, by its number") {
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 64, 128};
  auto why = [&](auto change) {
    auto other = asked;
    change(other);
    CHECK(!any_plan(other, false));
    std::string text;
    for (auto& each : undivided_of(other))
      text += (text.empty() ? "" : "; ") + each;
    return text;
  };
  CHECK(undivided_of(asked).empty());
  CHECK(
    why([](auto& x) {
      x.filter.tp = {7, 7};
    })
    == "--tensor 7: 7 does not divide the 32 attention heads; --tensor 7: 7 does not divide the 8 heads of keys and "
       "values, nor is it a multiple of them; --tensor 7: 7 does not divide the 64 GPUs");
  CHECK(why([](auto& x) {
          x.filter.tp = {5, 7};
        })
        == "--tensor 5..7: no number from there divides the 32 attention heads; --tensor 5..7: no number from there "
           "divides the 64 GPUs"); // 7 divides the feed-forward width of 14336
  CHECK(why([](auto& x) { x.filter.pp = {3, 3}; }) == "--pipeline 3: 3 does not divide the 64 GPUs");
  CHECK(why([](auto& x) { x.filter.pp = {64, 64}; }) == "--pipeline 64: 64 stages are more than the 32 layers");
  CHECK(why([](auto& x) {
          x.filter.cp = {3, 3};
        })
        == "--context 3: 6 does not divide the 8192 positions of a sequence, of which each rank has two parts; "
           "--context 3: 3 does not divide the 64 GPUs");
  CHECK(why([](auto& x) {
          x.filter.dp = {12, 12};
        })
        == "--data 12: 12 does not divide the 128 sequences of the global batch; --data 12: 12 does not divide the 64 "
           "GPUs");
  CHECK(why([](auto& x) { x.filter.micro_batches = {3}; })
        == "--micro-batch 3: 3 does not divide the 128 sequences of the global batch");
  CHECK(why([](auto& x) {
          x.filter.micro_batches = {4}, x.filter.dp = {64, 64};
        })
        == "--micro-batch 4: 4 does not divide the 2 sequences of each of 64 data-parallel ranks");
  CHECK(why([](auto& x) {
          x.filter.tp = {8, 8}, x.filter.pp = {16, 16};
        })
        == "--tensor 8 --pipeline 16: 8 x 16 = 128 does not divide the 64 GPUs");
  CHECK(
    why([](auto& x) {
      x.filter.tp = x.filter.cp = x.filter.pp = {1, 1};
      x.global_batch = 100;
    })
    == "--tensor 1 --context 1 --pipeline 1: that leaves 64 / 1 = 64 data-parallel ranks, and 64 does not divide the "
       "100 sequences of the global batch");
  CHECK(
    why([](auto& x) { x.devices = 97, x.global_batch = 8; })
    == "97 GPUs are a multiple of 97, which divides neither the 32 attention heads nor the 8 sequences of the global "
       "batch nor the 8192 positions, and is more than the 32 layers");
  CHECK(why([](auto& x) { x.devices = 63, x.global_batch = 512; })
        == "63 GPUs are TP x CP x DP x PP, and 63 = 3 x 3 x 7. Of the divisors of 63 (1, 3, 7, 9, 21 and 63) TP can be "
           "only 1 (32 attention heads), CP only 1 (8192 positions), DP only 1 (512 sequences), PP 1, 3, 7 or 9 "
           "(32 layers): no product of these is 63");
  asked.trained = *model_of("qwen3-30b-a3b");
  CHECK(why([](auto& x) {
          x.filter.ep = {3, 3};
        })
        == "--expert 3: 3 does not divide the 128 experts of a layer; --expert 3: 3 does not divide the 64 GPUs");
}

TEST_CASE("planner: what a framework does not have is named with the option that asks for it") {
  plan_question asked{*model_of("llama3-8b"), *system_of("h100-80g"), 64, 128};
  auto why = [&](training_framework framework, auto change) {
    auto other = asked;
    other.filter.framework = framework;
    change(other.filter);
    CHECK(!any_plan(other, false));
    return undivided_of(other);
  };
  using reasons = std::vector<std::string>;
  using enum training_framework;
  CHECK(why(megatron, [](auto& x) { x.only = {"zb-v"}; })
        == reasons{"--schedule zb-v: Megatron Core has no zb-v; its schedules are 1f1b, interleaved"});
  CHECK(why(megatron,
            [](auto& x) {
              x.only = {"zb-h1", "dualpipe"};
            })
        == reasons{"--schedule zb-h1,dualpipe: Megatron Core has no zb-h1 and no dualpipe; its schedules are 1f1b, "
                   "interleaved"});
  CHECK(why(megatron, [](auto& x) { x.offloads_activations = true; })
        == reasons{"--offload activations: Megatron Core has no off-loading of activations"});
  CHECK(why(torchtitan, [](auto& x) { x.attention = attention_kernel::unfused; })
        == reasons{"--attention unfused: torchtitan has no unfused attention"});
}

TEST_CASE("planner: numbers of devices and batches that divide are in ascending order") {
  plan_question asked{*model_of("llama3-70b"), *system_of("h100-80g"), 63, 512};
  const auto near = near_questions_that_divide(asked);
  CHECK(near.devices == std::vector<uint32_t>{56, 64, 68, 72});
  CHECK(near.batches == std::vector<uint32_t>{510, 511, 513, 516});
}
