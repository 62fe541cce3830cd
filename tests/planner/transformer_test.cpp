#include "planner/calibration/calibration.hpp"
#include "planner/costs/transformer_costs.hpp"
#include "planner/estimates/exchange_times.hpp"
#include "planner/models/known_models.hpp"
#include "planner/plans/plan_search.hpp"
#include "tools/validation/iteration_rows.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

const gpu_system& a100() {
  return known_systems().front();
}

std::vector<measured_iteration> rows_of(const char* name) {
  auto rows = read_iteration_rows(std::string{RINGMASTER_SOURCE_DIR} + "/bench/data/a100_iterations/" + name);
  REQUIRE_MESSAGE(rows.engaged(), render(rows.error()));
  return *rows;
}

/// Those that were calibrated on, or those that were not.
std::vector<measured_iteration> half_of(const std::vector<measured_iteration>& rows, size_t odd) {
  std::vector<measured_iteration> result;
  for (auto i = odd; i < rows.size(); i += 2)
    result.push_back(rows[i]);
  return result;
}

/// Megatron-LM's of Korthikanti et al. 2022, table 5.
training_setting published(uint32_t p, uint32_t chunks, uint32_t batch, uint32_t micro_batch, recomputation again) {
  training_setting how;
  how.set_degrees(8, 1, p);
  how.attention = attention_kernel::unfused;
  how.global_batch = batch;
  how.micro_batch = micro_batch;
  how.chunks = chunks;
  how.schedule = chunks > 1 ? pipeline_schedule::interleaved_1f1b : pipeline_schedule::one_f_one_b;
  how.again = again;
  how.sequence_parallel = again == recomputation::selective;
  return how;
}

std::string refusal_of_rows(const std::string& text) {
  test::temporary_directory dir;
  auto file = (dir.path() / "rows.csv").string();
  std::ofstream{file} << text;
  auto rows = read_iteration_rows(file);
  REQUIRE(!rows.engaged());
  auto sentence = render(rows.error());
  return sentence.substr(sentence.find("rows.csv"));
}

} // namespace

TEST_CASE("transformer: ZeRO's memory is the paper's, 7.5 billion parameters on 64 ranks") {
  // Rajbhandari et al. 2020, figure 1: 120 GB, 31.4 GB, 16.6 GB, 1.9 GB.
  const double p = 7.5e9, n = 64;
  CHECK(zero_bytes(0, n) * p == 120e9);
  CHECK(zero_bytes(1, n) == 4 + 12 / n);
  CHECK(zero_bytes(2, n) == 2 + 14 / n);
  CHECK(zero_bytes(3, n) == 16 / n);
  CHECK(std::abs(zero_bytes(1, n) * p - 31.4e9) < 0.05e9);
  CHECK(std::abs(zero_bytes(2, n) * p - 16.6e9) < 0.05e9);
  CHECK(std::abs(zero_bytes(3, n) * p - 1.9e9) < 0.05e9);
}

TEST_CASE("transformer: activations are Korthikanti's table 2") {
  const auto m = *model_of("megatron-22b");
  const double s = m.sequence, b = 4, h = m.hidden, a = m.heads, t = 8, sbh = s * b * h;
  const auto bytes = [&](bool in_sequence, recomputation again, attention_kernel by = attention_kernel::unfused) {
    training_setting how;
    how.tp = 8;
    how.sequence_parallel = in_sequence;
    how.again = again;
    how.attention = by;
    return doctest::Approx(activation_bytes(m, b, how, {})).epsilon(1e-12);
  };
  CHECK(bytes(false, recomputation::none) == sbh * (10 + 24 / t + 5 * a * s / (h * t)));
  CHECK(bytes(true, recomputation::none) == sbh * (34 / t + 5 * a * s / (h * t)));
  CHECK(bytes(false, recomputation::selective) == sbh * (10 + 24 / t));
  CHECK(bytes(true, recomputation::selective) == sbh * 34 / t);
  CHECK(bytes(false, recomputation::full) == 2 * sbh);
  // In tiles no scores are kept, and it is the outputs of norms and gates that run again.
  CHECK(bytes(false, recomputation::none, attention_kernel::flash) == sbh * (10 + 24 / t));
  CHECK(bytes(false, recomputation::selective, attention_kernel::flash) == sbh * (10 - 4 + (24 - 8) / t));
}

TEST_CASE("transformer: a GPT's activations depend on its network's width and on the precision") {
  auto m = *model_of("megatron-22b");
  const double sh = static_cast<double>(m.sequence) * m.hidden;
  training_setting how;
  const auto whole = activation_bytes(m, 1, how, {});
  how.computed_in = number_format::fp8; // of four products' inputs, one as wide as the network, one in bf16, too
  CHECK(activation_bytes(m, 1, how, {}) == doctest::Approx(whole - (2 + 4 - 1) * sh).epsilon(1e-12));
  how.computed_in = number_format::bf16;
  m.width *= 2;
  CHECK(activation_bytes(m, 1, how, {}) == doctest::Approx(whole + 16 * sh).epsilon(1e-12));
}

TEST_CASE("transformer: the first stage keeps L layers of 1F1B, L (1 + (p-1)/(pv)) interleaved") {
  const auto m = *model_of("gpt3-175b");
  CHECK(layers_kept_by_first(m, published(8, 1, 64, 1, recomputation::selective)) == 96);
  CHECK(std::abs(layers_kept_by_first(m, published(8, 3, 64, 1, recomputation::selective)) - 96 * (1 + 7.0 / 24))
        < 1e-9);
}

TEST_CASE("transformer: what was not calibrated on is predicted") {
  for (auto* name : {"single.csv", "multi.csv"}) {
    const auto off = deviation_of(half_of(rows_of(name), 1), a100());
    CAPTURE(name);
    CHECK(off.mean_absolute < 0.08);
  }
  struct row {
    const char* model;
    uint32_t p, chunks, batch, micro_batch;
    double full, selective;
  };
  double sum = 0;
  for (auto& x : {row{"megatron-22b", 1, 1, 4, 4, 1.42, 1.10}, row{"gpt3-175b", 8, 3, 64, 1, 18.13, 13.75}})
    for (auto again : {recomputation::full, recomputation::selective}) {
      const auto seconds = again == recomputation::full ? x.full : x.selective;
      const auto off = estimate_iteration(*model_of(x.model), a100(),
                                          published(x.p, x.chunks, x.batch, x.micro_batch, again))
                           .seconds
                         / seconds
                       - 1;
      CHECK(std::abs(off) < 0.09);
      sum += std::abs(off);
    }
  CHECK(sum / 4 < 0.037);
}

TEST_CASE("transformer: the constants are those that calibration finds") {
  auto rows = half_of(rows_of("single.csv"), 0);
  for (auto& x : half_of(rows_of("multi.csv"), 0))
    rows.push_back(x);
  const auto found = calibrate(a100(), rows);
  for (auto& fitted : calibrated_constants())
    for (auto& x : system_constants())
      if (x.name == fitted.name) {
        CAPTURE(x.name);
        CHECK(std::abs(found.*x.member / (a100().*x.member) - 1) < 1e-3);
      }
}

TEST_CASE("transformer: simulated operation by operation, an iteration takes what the closed form says") {
  struct planned_case {
    const char* model;
    uint32_t ranks;
    training_setting how;
  };
  auto with = [](training_setting how, mesh shape) {
    how.set_degrees(shape);
    return how;
  };
  const auto plain = published(8, 1, 64, 1, recomputation::full);
  std::vector<planned_case> cases;
  for (auto schedule :
       {pipeline_schedule::all_forwards_first, pipeline_schedule::one_f_one_b, pipeline_schedule::interleaved_1f1b,
        pipeline_schedule::zb_h1, pipeline_schedule::zb_h2, pipeline_schedule::zb_v, pipeline_schedule::dualpipe})
    for (uint32_t zero : {0, 1}) {
      auto how = with(published(4, 1, 128, 1, recomputation::none), {2, 2, 4});
      how.schedule = schedule;
      how.zero = zero;
      how.chunks = schedule == pipeline_schedule::interleaved_1f1b ? 2 : 1;
      cases.push_back({"gpt3-13b", 16, how});
    }
  for (auto& x : {planned_case{"megatron-22b", 8, published(1, 1, 4, 4, recomputation::full)},
                  planned_case{"gpt3-175b", 64, published(8, 3, 64, 1, recomputation::full)},
                  planned_case{"gpt3-175b", 64, plain}, planned_case{"gpt3-13b", 32, with(plain, {2, 4, 4})}})
    cases.push_back(x);
  for (auto& x : cases) {
    const auto m = *model_of(x.model);
    auto* which = strategy_of(name_of(x.how.schedule));
    model trained{m.layers, x.how.global_batch, x.how.micro_batch, x.how.simulated()};
    REQUIRE(!which->check(trained, x.ranks));
    auto costs = transformer_costs(m, a100(), x.how);
    auto found = simulate([&](rank& self) { return which->run(self, trained); }, trained, x.ranks, *costs);
    REQUIRE_MESSAGE(found.engaged(), render(found.error()));
    CAPTURE(x.model);
    CAPTURE(which->name);
    const auto estimate = estimate_iteration(m, a100(), x.how);
    CHECK(std::abs(found->end / estimate.seconds - 1) < 0.05);
    CHECK(static_cast<double>(found->ranks[found->peak_rank].peak_memory) < 1.02 * estimate.memory_bytes);
  }
}

TEST_CASE("transformer: recomputation repeats communication, which counts as communication") {
  auto m = *model_of("mixtral-8x7b");
  const auto on = *system_of("h100-80g");
  training_setting how;
  how.set_degrees(4, 4, 1);
  how.cp = 4;
  how.ep = 8;
  how.global_batch = 64;
  how.sequence_parallel = true;
  const auto once = estimate_iteration(m, on, how);
  how.again = recomputation::full;
  const auto again = estimate_iteration(m, on, how);
  for (auto part : {&exchange_parts::tensor, &exchange_parts::context}) {
    CHECK(once.exposed.layers.*part > 0);
    CHECK(again.exposed.layers.*part == doctest::Approx(1.5 * once.exposed.layers.*part));
  }
  const auto dispatched = [](const iteration_estimate& x) {
    return x.exposed.layers.experts + x.hidden.layers.experts;
  };
  CHECK(dispatched(again) == doctest::Approx(1.5 * dispatched(once)));
  CHECK(again.hidden.layers.experts == 0); // nothing goes beside what Megatron-LM runs again
  // A third forward of the layers is all that is added: computing and communicating.
  const auto computing = [](const iteration_estimate& x) { return x.seconds - x.exposed.sum(); };
  CHECK(computing(again) > computing(once));
  CHECK(computing(again) < 1.5 * computing(once));
}

TEST_CASE(
  "transformer: one stage hides dispatch behind another micro-batch, if there is one and its weights are whole") {
  auto on = *system_of("gb200-nvl72");
  on.paired_launches = 1; // so it is not slower for that
  const auto m = *model_of("qwen3-30b-a3b");
  auto exposed = [&](uint32_t micro_batches, uint32_t shard) {
    training_setting how;
    how.set_degrees(1, 8, 1);
    how.ep = 8;
    how.global_batch = 8 * micro_batches;
    how.shard_ranks = shard;
    const auto x = layer_times_of(m, on, how, {true, false});
    return x.exposed.experts / (x.exposed.experts + x.hidden.experts);
  };
  CHECK(exposed(1, 0) == 1);
  CHECK(exposed(4, 0) == doctest::Approx((1 + 3 * on.exposed_expert) / 4)); // the first one has none before it
  CHECK(exposed(4, 8) == 1);
}

TEST_CASE("transformer: dispatch hides where that is faster than what the host launches more for it") {
  const auto m = *model_of("qwen3-30b-a3b");
  training_setting how;
  how.set_degrees(1, 8, 1);
  how.ep = 8;
  how.global_batch = 32;
  how.micro_batch = 1;
  auto seconds = [&](double paired_launches, double exposed_expert, number_format computed_in) {
    auto on = *system_of("gb200-nvl72");
    on.paired_launches = paired_launches;
    on.exposed_expert = exposed_expert;
    how.computed_in = computed_in;
    const auto x = layer_times_of(m, on, how, {true, false});
    return x.forward + x.backward;
  };
  using enum number_format;
  const auto apart = seconds(1, 1, bf16), free = seconds(1, 0.2, bf16);
  CHECK(free < apart);
  CHECK(seconds(1.01, 0.2, bf16) > free);
  CHECK(seconds(1.01, 0.2, bf16) < apart);
  CHECK(seconds(1.4, 0.2, bf16) == apart);                   // the host is what takes so long here
  CHECK(seconds(1.4, 0.2, mxfp8) == seconds(1, 0.2, mxfp8)); // a graph launches the whole iteration
}

TEST_CASE("transformer: pipelines hide dispatch as far as forwards of one micro-batch go beside backwards of another") {
  using enum pipeline_schedule;
  auto paired = [](pipeline_schedule schedule, uint32_t chunks, uint32_t micro_batches) {
    training_setting how;
    how.set_degrees(1, 1, 8);
    how.schedule = schedule;
    how.chunks = chunks;
    how.global_batch = micro_batches;
    return how.paired_part();
  };
  CHECK(paired(interleaved_1f1b, 4, 8) == 0); // all forwards come first
  CHECK(paired(interleaved_1f1b, 4, 16) == doctest::Approx((64 - 14 - 24 - 1) / 64.0));
  CHECK(paired(interleaved_1f1b, 4, 512) > 0.97);
  CHECK(paired(interleaved_1f1b, 1, 512) == 0);
  CHECK(paired(one_f_one_b, 1, 512) == 0);
  CHECK(paired(dualpipe, 2, 16) == doctest::Approx(5 / 16.0));
}

TEST_CASE("transformer: rings of shards cost a step for each further rank, which thousands of GPUs cannot hide") {
  const auto on = *system_of("h100-80g");
  training_setting how;
  how.set_degrees(1, 1024, 1);
  how.shard_ranks = 1024;
  CHECK(shard_latency(false, on, how) == doctest::Approx(127 * on.ring_hop_s + 896 * on.ring_step_s));
  CHECK(shard_latency(true, on, how) == shard_latency(false, on, how)); // where no rank has experts of its own
  how.set_degrees(1, 8, 1);
  CHECK(shard_latency(false, on, how) == doctest::Approx(7 * on.ring_step_s));
  plan_question asked{*model_of("llama3-70b"), on, 512, 1024, {}};
  asked.filter.only = {"fsdp"};
  auto seconds = [&](uint32_t devices) {
    asked.devices = devices;
    asked.global_batch = 2 * devices;
    return plan_transformer(asked, 1).best.at(0).cost.seconds;
  };
  CHECK(seconds(16384) > 1.05 * seconds(512));
}

TEST_CASE("transformer: tensor ranks hold a whole copy of what is not cut: norms, routers, latent attention's common "
          "vectors, heads") {
  training_setting how;
  how.set_degrees(8, 1, 1);
  const double common = 7168 * (1536 + 512 + 64) + 1536 + 512, norms = 2 * 7168, router = (7168 + 1) * 256;
  const double cut = 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168, shared = 3 * 7168 * 2048;
  const auto deepseek = layer_parameters(*model_of("deepseek-v3"), how, {.experts = true});
  CHECK(deepseek.dense == doctest::Approx(common + norms + router + (cut + shared) / 8).epsilon(1e-12));
  how.set_degrees(16, 1, 1); // for eight heads of keys and values
  const double queries = 2 * 4096 * 4096, head = 2 * 4096 * 128, network = 3 * 4096 * 14336;
  const auto llama = layer_parameters(*model_of("llama3-8b"), how, {});
  CHECK(llama.dense == doctest::Approx((queries + network) / 16 + head + 2 * 4096).epsilon(1e-12));
}

TEST_CASE("transformer: shards go around one ring by all cards at once, over as few domains as hold them") {
  const auto h100 = *system_of("h100-80g"), nvl72 = *system_of("gb200-nvl72");
  CHECK(ring_time(8e9, h100, 8, 1, 8) == doctest::Approx(7 / 8.0 * 8e9 / h100.host_bandwidth));
  const auto narrower = std::min(h100.host_bandwidth, h100.network_bandwidth);
  CHECK(ring_time(8e9, h100, 256, 1, 256) == doctest::Approx(255 / 256.0 * 8e9 / narrower));
  // Three of a group's ranks in a domain have three of its eight cards.
  for (uint32_t ranks : {42, 44, 47}) // on six hosts, with seven on the emptiest
    CHECK(ring_time(8e9, h100, ranks, 1, ranks)
          == doctest::Approx((ranks - 1.0) / ranks * 8e9 / (h100.network_bandwidth * 7 / 8)));
  CHECK(ring_time(8e9, h100, 6, 2, 12) == doctest::Approx(5 / 6.0 * 8e9 / (h100.network_bandwidth * 3 / 8)));
  // 77 have no divisor near 72: two domains, as 78 have, and not seven.
  const auto odd = all_reduce_time(8e9, nvl72, 77, 1, 77), even = all_reduce_time(8e9, nvl72, 78, 1, 78);
  CHECK(odd == doctest::Approx(even).epsilon(0.02));
}

TEST_CASE("transformer: what stages wait for the slowest one is told apart from work and from the bubble") {
  const auto m = *model_of("llama3-8b");
  const auto on = *system_of("h100-80g");
  training_setting how;
  how.global_batch = 32;
  how.set_degrees(1, 1, 1);
  const auto alone = estimate_iteration(m, on, how);
  CHECK(alone.imbalance == 0);
  how.set_degrees(1, 1, 8);
  const auto staged = estimate_iteration(m, on, how); // the last stage has the logits, too
  const auto work = alone.seconds - alone.update - on.iteration_s;
  CHECK(staged.imbalance > 0.1 * staged.seconds);
  CHECK(staged.imbalance + work / 8 + staged.bubble + staged.update + on.iteration_s + staged.exposed.sum()
        == doctest::Approx(staged.seconds).epsilon(1e-3));
}

TEST_CASE("transformer: a precision is what the products have, not what is as long") {
  for (auto name : {"h100-80g", "h200-141g", "mi300x"})
    CHECK(system_of(name)->peak_of(number_format::mxfp8) == 0);
  CHECK(system_of("b200")->peak_of(number_format::mxfp8) == system_of("b200")->peak_of(number_format::fp8));
}

TEST_CASE("transformer: the graph of a whole iteration leaves the host little to launch, in mxfp8 only") {
  auto with = *system_of("gb200-nvl72"), without = with;
  without.whole_graph_launches = 1;
  const auto m = *model_of("gpt-oss-120b");
  training_setting how;
  how.ep = 8;
  how.set_degrees(1, 8, 1);
  how.global_batch = 16;
  auto faster = [&](number_format in) {
    how.computed_in = in;
    return layer_times_of(m, without, how, {true, false}).forward / layer_times_of(m, with, how, {true, false}).forward;
  };
  CHECK(faster(number_format::mxfp8) > 1.2);
  CHECK(faster(number_format::fp8) == 1);
  CHECK(faster(number_format::bf16) == 1);
}

TEST_CASE("transformer: rows that cannot have been measured are refused with the line") {
  const std::string header
    = "GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"
      "data parallelism,pipeline parallelism,iteration time (ms)\n";
  CHECK(refusal_of_rows(header + "4,16,8,2048,16,20,1024,2,1,1,357\n")
        == "rows.csv, line 2: 2 tensor x 1 data x 1 pipeline parallelism is not 4 GPUs");
  CHECK(refusal_of_rows(header + "2,15,8,2048,16,20,1024,2,1,1,357\n")
        == "rows.csv, line 2: a global batch of 15 is no multiple of 8 samples x 1 data-parallel ranks");
  CHECK(refusal_of_rows(header + "2,16,8,2048,16,20,1024,2,1,1,soon\n")
        == "rows.csv, line 2: \"soon\" is no iteration time (ms) (a number above 0)");
  CHECK(refusal_of_rows(header + "2,16,8\n") == "rows.csv, line 2: there are 3 cells, but line 1 has 11 columns");
}

TEST_CASE("planner: the best is the fastest that fits, and the front has no plan that another beats") {
  const auto m = *model_of("gpt3-13b");
  const auto found = plan_transformer({m, a100(), 64, 512});
  REQUIRE(found.best.size() == 10);
  CHECK(found.fitting <= found.evaluated);
  const auto room = a100().memory_bytes - a100().reserved_bytes;
  for (size_t i = 0; i < found.best.size(); ++i) {
    auto& x = found.best[i];
    CHECK(x.cost.memory_bytes <= room);
    CHECK(x.how.devices() == 64);
    CHECK(x.how.global_batch == x.how.micro_batches() * x.how.micro_batch * x.how.dp);
    CHECK((i == 0 || found.best[i - 1].cost.seconds <= x.cost.seconds));
    CHECK(estimate_iteration(m, a100(), x.how).seconds == x.cost.seconds);
  }
  for (auto& x : found.too_large) {
    CHECK(x.cost.memory_bytes > room);
    CHECK(x.cost.seconds <= found.best.front().cost.seconds);
  }
  CHECK(found.pareto.front().cost.seconds == found.best.front().cost.seconds);
  for (size_t i = 1; i < found.pareto.size(); ++i) {
    CHECK(found.pareto[i - 1].cost.seconds <= found.pareto[i].cost.seconds);
    CHECK(found.pareto[i - 1].cost.memory_bytes > found.pareto[i].cost.memory_bytes);
  }
}

TEST_CASE("planner: what does not divide has no plan, what is too large has none that fits") {
  CHECK(plan_transformer({*model_of("gpt3-175b"), a100(), 97, 3}).evaluated == 0);
  const auto large = plan_transformer({*model_of("megatron-1t"), a100(), 8, 64});
  CHECK(large.best.empty());
  CHECK(large.too_large.size() == 3);
}
