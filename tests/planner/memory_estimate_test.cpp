// The memory of a rank, in closed form, against what the simulator finds that it holds at its peak.
#include "planner/costs/transformer_costs.hpp"
#include "planner/estimates/iteration_estimate.hpp"
#include "planner/models/known_models.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

using enum pipeline_schedule;

/// What the simulator finds, as a part of what the closed form says.
double peak_of(const language_model& m, const training_setting& how) {
  const auto& system = known_systems().front();
  auto* which = strategy_of(name_of(how.schedule));
  model trained{m.layers, how.global_batch, how.micro_batch, how.simulated()};
  auto refused = which->check(trained, how.shape().size());
  REQUIRE_MESSAGE(!refused, render(refused));
  auto costs = transformer_costs(m, system, how);
  auto found = simulate([&](rank& self) { return which->run(self, trained); }, trained, how.shape().size(), *costs);
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  return static_cast<double>(found->ranks[found->peak_rank].peak_memory)
         / estimate_iteration(m, system, how).memory_bytes;
}

} // namespace

TEST_CASE(
  "memory estimate: of a large model, whose parameters and activations are nearly all, it is right within 2.6 %") {
  for (auto schedule : {one_f_one_b, interleaved_1f1b, zb_h1, zb_h2, zb_v})
    for (uint32_t zero : {0, 1}) {
      training_setting how;
      how.attention = attention_kernel::unfused;
      how.set_degrees(2, 2, 4);
      how.global_batch = 32;
      how.schedule = schedule;
      how.chunks = schedule == interleaved_1f1b ? 2 : 1;
      how.zero = zero;
      CAPTURE(name_of(schedule));
      CAPTURE(zero);
      CHECK(std::abs(peak_of(*model_of("gpt3-13b"), how) - 1) < 0.026);
    }
}

TEST_CASE("memory estimate: of a small model in large micro-batches, the outputs that come and go are counted, too") {
  // An output of a layer, of the whole micro-batch, is 3 to 7 % of what a rank holds.
  struct row {
    pipeline_schedule schedule;
    uint32_t stages, layers, vocabulary;
    bool sequence_parallel;
  };
  for (auto& x :
       {row{one_f_one_b, 2, 2, 128, true}, row{one_f_one_b, 2, 2, 1024, true}, row{one_f_one_b, 4, 4, 128, true},
        row{one_f_one_b, 4, 4, 1024, true}, row{zb_h1, 2, 2, 1024, false}, row{zb_h2, 2, 2, 128, false}})
    for (uint32_t zero : {0, 1}) {
      const auto m = gpt_shape("wide", 256, 4, x.layers, 16, x.vocabulary);
      training_setting how;
      how.attention = attention_kernel::unfused;
      how.set_degrees(4, 2, x.stages);
      how.micro_batch = 1024;
      how.global_batch = 2 * 8 * how.micro_batch;
      how.schedule = x.schedule;
      how.sequence_parallel = x.sequence_parallel;
      how.zero = zero;
      CAPTURE(name_of(x.schedule));
      CAPTURE(x.stages);
      CAPTURE(x.vocabulary);
      CHECK(std::abs(peak_of(m, how) - 1) < 0.01);
    }
}
