// Terms of the closed form, each by itself.
#include "runtime/training/transformer/estimates/exchange_times.hpp"
#include "runtime/training/transformer/estimates/iteration_estimate.hpp"
#include "runtime/training/transformer/models/known_models.hpp"

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

parallel_setting setting(mesh shape, uint32_t expert, uint32_t global_batch) {
  parallel_setting how;
  how.shape = shape;
  how.expert = expert;
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
  how.shard = 256;
  how.micro_batch = 2;
  how.again = recomputation::selective;
  how.offloads_activations = true;
  const auto x = estimate_iteration(m, on, how);
  CHECK(x.offload > 0.3); // 236 GB at 55 GB/s take longer than a forward, and less than it and a backward
  on.host_link_bandwidth *= 2;
  CHECK(estimate_iteration(m, on, how).offload == 0);
}

TEST_CASE("estimate terms: a faster system is no slower with experts, whoever's constants it has") {
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
  how.shape.data = 9; // 36 devices: two stages
  CHECK(hop_time(model, system, how) == doctest::Approx((within(4) + between(4)) / 2));
  how.shape.data = 10;
  CHECK(hop_time(model, system, how) == doctest::Approx(between(4)));
  how.shape = {4, 4, 4}; // 64 devices
  CHECK(hop_time(model, system, how) == doctest::Approx(within(4)));
}
