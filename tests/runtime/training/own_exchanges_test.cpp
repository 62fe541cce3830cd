// The closed form against programs whose own operations pass keys around and take positions to experts: what a plan's
// simulation has in a layer's time is simulated message by message.
#include "runtime/training/transformer/plans/transformer_costs.hpp"

#include "tests/runtime/training/drawn_plans.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

/// Of all ranks of a plan; nothing where the strategy cannot run it.
std::optional<agreement> own_exchanges_agreement_of(std::string_view strategy, const drawn_plan& x) {
  auto& how = x.how;
  auto* which = strategy_of(strategy);
  model trained{.layers = x.trained.layers,
                .global_batch = how.global_batch,
                .micro_batch = how.micro_batch,
                .chunks = how.chunks,
                .tensor = how.shape.tensor,
                .data = how.shape.data,
                .sequence_parallel = how.sequence_parallel,
                .zero = how.zero,
                .context = how.context,
                .experts = how.expert};
  const auto needs = needs_of(*which, trained);
  const auto places = places_of(x.trained, how, needs);
  trained.layers = places.count();
  trained.dense_first = places.dense_first();
  if (which->check(trained, how.devices()))
    return {};
  return agreement_with(*which, trained, how.devices(), *transformer_costs(x.trained, x.on, how, needs), x);
}

} // namespace

TEST_CASE("own exchanges: 120 drawn plans with context and experts take what the closed form says, 5 % and 3 %") {
  std::mt19937 random{20261127};
  std::array<uint32_t, 3> compared{}; // with context, with experts, with both
  for (size_t drawn = 0; compared[0] + compared[1] + compared[2] < 120; ++drawn) {
    REQUIRE(drawn < 5000);
    const auto x = draw(random, {"1f1b"}, {"zero0", "zero1"});
    const bool hides = x.how.expert > 1 && x.how.paired_part() > 0; // behind another micro-batch, as no box does
    const bool large = x.how.devices() > 32 || uint64_t{x.how.micro_batches()} * x.trained.layers > 1000;
    if (x.how.context * x.how.expert == 1 || hides || large)
      continue;
    const auto found = own_exchanges_agreement_of("3d", x);
    if (!found)
      continue;
    ++compared[x.how.expert == 1 ? 0 : x.how.context == 1 ? 1 : 2];
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
          drawn_plan x{*model_of(name), *system_of(system), {}};
          x.how.shape.data = 8;
          x.how.expert = experts;
          x.how.global_batch = micro_batches * x.how.shape.data;
          x.how.overlapped = true;
          CAPTURE(text_of(x));
          const auto found = own_exchanges_agreement_of("expert", x);
          REQUIRE(found.has_value());
          CHECK(std::abs(found->time - 1) < 0.05);
          CHECK(found->memory < 1); // the program has two micro-batches forward at once, Megatron-LM one
          CHECK(found->memory > 0.8);
        }
}
