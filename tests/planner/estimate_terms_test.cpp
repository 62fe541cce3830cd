// Terms of the closed form, each by itself.
#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/iteration_estimate.hpp"
#include "planner/models/known_models.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace ringmaster::training;

namespace {

/// The mean number of domains beside the first that a position's choices lie in, drawn: experts are chosen among those
/// of some groups, as many in each.
double drawn_domains(const expert_layers& x, uint32_t domains) {
  std::mt19937 random{7};
  constexpr int draws = 20'000;
  const auto of_a_group = x.count / x.groups, of_a_domain = x.count / domains;
  uint64_t sum = 0;
  for (int i = 0; i < draws; ++i) {
    std::set<uint32_t> groups, others;
    while (groups.size() < x.groups_chosen)
      groups.insert(static_cast<uint32_t>(random() % x.groups));
    for (auto group : groups)
      for (uint32_t choice = 0; choice < x.chosen / x.groups_chosen; ++choice)
        others.insert((group * of_a_group + static_cast<uint32_t>(random() % of_a_group)) / of_a_domain);
    sum += others.size() - others.count(0);
  }
  return static_cast<double>(sum) / draws;
}

training_setting setting(mesh shape, uint32_t expert, uint32_t global_batch) {
  training_setting how;
  how.set_degrees(shape);
  how.ep = expert;
  how.global_batch = global_batch;
  how.overlapped = true;
  how.zero = 1;
  return how;
}

} // namespace

TEST_CASE("estimate terms: choices within groups of experts lie in as many domains as groups have parts in") {
  const auto deepseek = model_of("deepseek-v3")->experts;
  REQUIRE(deepseek.groups == 8);
  REQUIRE(deepseek.groups_chosen == 4);
  for (uint32_t domains : {2u, 4u, 8u, 16u, 32u}) {
    CAPTURE(domains);
    CHECK(other_domains(deepseek, domains) == doctest::Approx(drawn_domains(deepseek, domains)).epsilon(0.01));
  }
  auto anywhere = deepseek;
  anywhere.groups = anywhere.groups_chosen = 0;
  for (uint32_t domains = 2; domains <= 64; ++domains) // few groups never mean more
    CHECK(other_domains(deepseek, domains) <= other_domains(anywhere, domains));
}

TEST_CASE("estimate terms: queries that are not made by way of latent ones take the time of their whole product") {
  auto latent = *model_of("deepseek-v3"), whole = latent;
  whole.latent.query_rank = 0;
  const auto on = *system_of("h100-80g");
  const auto how = setting({1, 64, 8}, 64, 4096);
  const auto rows = 1.0 * latent.sequence;
  const auto queries = latent.heads * (latent.head_size + latent.latent.rotary_size);
  const auto more = 2 * rows * (queries * latent.hidden - latent.latent.query_rank * (latent.hidden + queries));
  const auto forward = [&](const language_model& m) { return layer_times_of(m, on, how, {true, false}).forward; };
  CHECK(forward(whole) > forward(latent));
  CHECK(forward(whole) - forward(latent) == doctest::Approx(more / on.product_rate(how.computed_in)).epsilon(0.25));
}

TEST_CASE("estimate terms: positions above an expert's capacity are not sent to it") {
  auto m = *model_of("qwen3-30b-a3b");
  m.experts.capacity = 1.25;
  const auto on = *system_of("h100-80g");
  auto exchanged = [&](double imbalance) {
    m.experts.imbalance = imbalance;
    const auto x = layer_times_of(m, on, setting({1, 64, 1}, 16, 512), {true, false});
    return x.exposed.experts + x.hidden.experts;
  };
  CHECK(exchanged(1.1) < exchanged(1.25));
  CHECK(exchanged(4) == exchanged(1.25));
}

TEST_CASE(
  "estimate terms: without a pipeline what layers keep goes out beside forwards, and comes back beside backwards") {
  const auto m = *model_of("llama3-70b");
  auto on = *system_of("h100-80g");
  auto how = setting({1, 256, 1}, 1, 512);
  how.zero = 0;
  how.shard_ranks = 256;
  how.micro_batch = 2;
  how.again = recomputation::selective;
  how.offloads_activations = true;
  const auto x = estimate_iteration(m, on, how);
  CHECK(x.offload > 0.3); // 236 GB at 55 GB/s take longer than a forward, and less than it and a backward
  on.host_link_bandwidth *= 2;
  CHECK(estimate_iteration(m, on, how).offload == 0);
}

TEST_CASE("estimate terms: a faster system is no slower with experts, with any system's constants") {
  for (auto* name : {"qwen3-30b-a3b", "gpt-oss-120b", "mixtral-8x7b", "deepseek-v3"})
    for (uint32_t experts : {1, 8})
      for (uint32_t sequence : {512, 4096}) {
        CAPTURE(name);
        CAPTURE(experts);
        CAPTURE(sequence);
        auto trained = *model_of(name);
        trained.sequence = sequence;
        double before = 1e9;
        for (auto* system : {"a100-80g", "h100-80g", "b200"}) {
          const auto seconds = estimate_iteration(trained, *system_of(system), setting({1, 8, 1}, experts, 64)).seconds;
          CHECK(seconds < before);
          before = seconds;
        }
      }
}

TEST_CASE("estimate terms: stages that share a domain have one hop of two over the network, others both or none") {
  const auto model = *model_of("llama3.1-405b");
  const auto system = *system_of("gb200-nvl72");
  auto how = setting({4, 4, 16}, 1, 1536); // 16 devices a stage
  const auto bytes = 2.0 * model.sequence * model.hidden;
  auto within = [&](double parts) { return system.hop_latency_s + bytes / parts / system.host_bandwidth; };
  auto between = [&](double parts) { return system.hop_latency_s + bytes / parts / system.hop_bandwidth; };
  CHECK(hop_time(model, system, how) == doctest::Approx((within(1) + between(4)) / 2));
  how.sequence_parallel = true; // each rank has its part of the positions
  CHECK(hop_time(model, system, how) == doctest::Approx((within(4) + between(4)) / 2));
  how.dp = 9; // 36 devices: two stages
  CHECK(hop_time(model, system, how) == doctest::Approx((within(4) + between(4)) / 2));
  how.dp = 10;
  CHECK(hop_time(model, system, how) == doctest::Approx(between(4)));
  how.set_degrees(4, 4, 4); // 64 devices
  CHECK(hop_time(model, system, how) == doctest::Approx(within(4)));
}

TEST_CASE("estimate terms: a window, chunks, and heads that choose keys take the time of the scores that they make") {
  const auto on = *system_of("h100-80g");
  training_setting how;
  how.set_degrees(2, 4, 1);
  auto m = *model_of("llama3-8b");
  m.sequence = 8192;
  auto core = [&](const language_model& x) { return layer_times_of(x, on, how, {false, x.has_windows()}).core; };
  const auto full = core(m);
  m.window = 2048;
  m.full_every = 0;
  const auto windowed = core(m);
  m.chunked = true;
  const auto chunked = core(m);
  m.chunked = false;
  m.indexer = {.heads = 64, .head_size = 128};
  const auto chosen = core(m);
  // Layers are stretched by their host's launches, alike up to a few in a thousand.
  CHECK(windowed / full == doctest::Approx((2048 - 2048. * 2048 / 16384) / 4096).epsilon(0.03));
  CHECK(chunked / full == doctest::Approx(1024. / 4096).epsilon(0.03));
  CHECK((chosen - windowed) / full
        == doctest::Approx(64. * 128 / (16 * 2 * 128)).epsilon(0.03)); // on each of both ranks
}

TEST_CASE("estimate terms: linear attention takes a time and a memory in proportion to positions, cut among ranks") {
  const auto on = *system_of("h100-80g");
  auto m = *model_of("qwen3-30b-a3b");
  m.linear = {.key_heads = 16, .value_heads = 32, .key_size = 128, .value_size = 128, .convolution = 4};
  auto of = [&](uint32_t sequence, uint32_t tensor, layer_kind kind) {
    m.sequence = sequence;
    training_setting how;
    how.set_degrees(tensor, 1, 1);
    how.sequence_parallel = tensor > 1;
    return std::pair{layer_times_of(m, on, how, kind).core, activation_bytes(m, 1, how, kind)};
  };
  const layer_kind linear{true, true}, whole{true, false};
  CHECK(of(65536, 1, linear).first / of(32768, 1, linear).first == doctest::Approx(2).epsilon(0.1));
  CHECK(of(65536, 1, whole).first / of(32768, 1, whole).first > 3.5);
  CHECK(of(65536, 1, linear).second == 2 * of(32768, 1, linear).second);
  CHECK(of(32768, 4, linear).second == doctest::Approx(of(32768, 1, linear).second / 4));
  // What it keeps of a position beside what other layers do: queries, keys and values before the convolution and after,
  // the gate, the output; where those keep queries, keys, values and the output.
  const auto more = (of(32768, 1, linear).second - of(32768, 1, whole).second) / 32768;
  CHECK(more == doctest::Approx(2 * (2 * 8192 + 4096 + 4096) - 2 * ((32 + 8) * 128 + 4096)));
}

TEST_CASE("estimate terms: attention beside the network has one sum of tensor-parallel ranks a layer, each way") {
  const auto on = *system_of("h100-80g");
  training_setting how;
  how.set_degrees(8, 1, 1);
  auto m = *model_of("llama3-8b");
  const auto two = layer_times_of(m, on, how, {});
  m.parallel = true;
  const auto one = layer_times_of(m, on, how, {});
  CHECK(one.exposed.tensor + one.hidden.tensor == doctest::Approx((two.exposed.tensor + two.hidden.tensor) / 2));
}

TEST_CASE("estimate terms: tensor-parallel ranks cut linear attention, and have whole what chooses keys") {
  training_setting one, eight;
  eight.set_degrees(8, 1, 1);
  auto m = *model_of("qwen3-30b-a3b");
  m.linear = {.key_heads = 16, .value_heads = 32, .key_size = 128, .value_size = 128, .convolution = 4};
  const double norms = 2 * 2048 + 128, router = 2048 * 128, cut = 2048 * (2 * 2048 + 3 * 4096 + 64) + 4 * 8192 + 64;
  CHECK(layer_parameters(m, one, {true, true}).dense == norms + router + cut);
  CHECK(layer_parameters(m, eight, {true, true}).dense == norms + router + cut / 8);
  m = *model_of("deepseek-v3");
  const auto before = layer_parameters(m, eight, {}).dense;
  m.indexer = {.heads = 64, .head_size = 128};
  CHECK(layer_parameters(m, eight, {}).dense - before == doctest::Approx(1536 * 8192 + 7168 * (128 + 64) + 2 * 128));
  CHECK(parameter_counts_of(m).attention - parameter_counts_of(*model_of("deepseek-v3")).attention
        == 1536 * 8192 + 7168 * (128 + 64) + 2 * 128);
}

TEST_CASE("estimate terms: of windows in long periods the stage with the most whole layers is looked at") {
  auto m = *model_of("llama3-8b");
  m.window = 1024;
  m.full_every = 7;
  training_setting how;
  how.set_degrees(1, 1, 16); // two layers each: those of layers 6, 13, 20 and 27 have one that is whole
  double most = 0, looked_at = 0;
  auto whole = [&](uint32_t stage) {
    const auto has = stage_layers_of(m, how, stage);
    return has.dense - has.windowed_dense;
  };
  for (uint32_t stage = 0; stage < 16; ++stage)
    most = std::max(most, whole(stage));
  for (auto stage : stages_that_count(m, how))
    looked_at = std::max(looked_at, whole(stage));
  CHECK(most == 1);
  CHECK(looked_at == 1);
}
