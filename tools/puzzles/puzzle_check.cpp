#include "tools/puzzles/puzzle_check.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "tools/puzzles/puzzle_programs.hpp"
#include "training/strategies/strategies.hpp"

#include <fmt/format.h>

#include <exception>
#include <vector>

namespace ringmaster {

namespace {

using namespace training;

constexpr auto task_0 =
  R"(Train on all samples at once: load, forward, loss, backward, update, finish. Hold no value longer than
it is needed.)";
constexpr auto task_1 =
  R"(Take one sample after the other through the model, so that the activations of only one are held, and add up its
gradients. Update once, with the sums.)";
constexpr auto task_2 =
  R"(Every rank has the whole model, and takes a sample of its own through it. An update wants the gradient of all
samples, so the ranks sum theirs first, with all_reduce.)";
constexpr auto task_3 =
  R"(Every rank keeps a quarter of each layer's weight and optimizer state. all_gather a layer's weight right
before its forward, and again before its backward; drop it right after. all_reduce the gradients, and update with
a slice.)";
constexpr auto task_4
  = R"(As puzzle 3, but no rank keeps a whole gradient either: reduce_scatter it right after the layer's backward.)";
constexpr auto task_5 =
  R"(Every rank has two layers of its own, whole. All samples go through them at once: activations are sent from rank
to rank up to the loss, their gradients all the way back. No collective is needed, and the ranks mostly wait.)";
constexpr auto task_6 =
  R"(The pipeline of puzzle 5 with less waiting: send each sample on by itself. First all samples forward, then all
backward, with the gradients added up; one update in the end.)";
constexpr auto task_7 =
  R"(Every layer is a stage of 4 ranks, and every sample goes through a rank of each stage. The ranks of a stage
share its weight, optimizer state and gradient as in puzzle 4, and talk to the neighbouring stages as in
puzzle 5.)";

std::vector<puzzle> listed() {
  const model small{2, 4}, sharded{6, 4}, pipelined{8, 4}, whole{.layers = 4, .global_batch = 4, .parallel = {.dp = 4}};
  return {
    {0, "standard training", 1, small, task_0, 16.5, 2'621'440, puzzle_0, solution_0,
     "examples/puzzles/solution_0.cpp"},
    {1, "gradient accumulation", 1, small, task_1, 16.5, 1'966'080, puzzle_1, solution_1,
     "examples/puzzles/solution_1.cpp"},
    {2, "distributed data parallel", 4, small, task_2, 5.1, 1'835'008, puzzle_2, data_parallel.run,
     "training/strategies/data_parallel.cpp"},
    {3, "weight-sharded data parallel", 4, sharded, task_3, 19.9, 2'752'512, puzzle_3, weight_sharded.run,
     "training/strategies/weight_sharded.cpp"},
    {4, "fully sharded data parallel", 4, sharded, task_4, 19.9, 2'359'296, puzzle_4, zero_3.run,
     "training/strategies/zero_3.cpp"},
    {5, "pipeline", 4, pipelined, task_5, 66.9, 3'145'728, puzzle_5, whole_batch_pipeline.run,
     "training/strategies/pipelines/whole_batch_pipeline.cpp"},
    {6, "GPipe", 4, pipelined, task_6, 33.3, 4'194'304, puzzle_6, gpipe.run, "training/strategies/pipelines/gpipe.cpp"},
    {7, "pipeline with FSDP", 16, whole, task_7, 15.5, 966'656, puzzle_7, sharded_pipeline.run,
     "training/strategies/pipelines/sharded_pipeline.cpp"},
  };
}

} // namespace

std::span<const puzzle> puzzles() {
  static const auto all = listed();
  return all;
}

namespace {

using namespace training;

constexpr uint64_t puzzle_operations_max = 1'000'000; ///< A puzzle takes hundreds.

/// Sees whether a strategy begins anything, and lets nothing go on.
class onlooker final : public executor {
public:
  bool seen() const { return seen_; }

  bool begin(pending&) override {
    seen_ = true;
    return false;
  }
  bool await(pending&) override { return false; }
  void fail(uint32_t, caf::error) override { seen_ = true; }
  bool failed() const override { return seen_; }
  void release(uint32_t, uint64_t) noexcept override {}

private:
  bool seen_ = false;
};

bool is_written(const puzzle& which, const strategy_function& program) {
  for (uint32_t i = 0; i < which.ranks; ++i) {
    onlooker by;
    rank self{by, i, which.ranks, which.trained};
    auto started = program(self);
    try {
      started.body().resume();
    } catch (const std::exception&) {
      return true; // which the simulator will say
    }
    if (by.seen())
      return true;
  }
  return false;
}

} // namespace

puzzle_result check(const puzzle& which, const strategy_function& program) {
  constexpr auto rounding = 1e-9; // of sums of tenths, in whatever order
  puzzle_result result;
  if (!is_written(which, program))
    return result;
  auto found = simulate(program, which.trained, which.ranks, puzzle_costs(), false, puzzle_operations_max);
  if (!found) {
    result.judged = verdict::wrong;
    result.error = std::move(found.error());
    return result;
  }
  ensure(found->peak_rank < found->ranks.size(), "the peak is at one of the ranks");
  result.time = found->time;
  result.peak_memory = found->ranks[found->peak_rank].peak_memory;
  result.slower = result.time > which.reference_time * (1 + rounding);
  result.larger = result.peak_memory > which.reference_memory;
  result.judged = result.slower || result.larger ? verdict::right : verdict::solved;
  return result;
}

puzzle_result check_stub(const puzzle& which) {
  return check(which, [&](rank& self) { return which.stub(self, which.trained); });
}

caf::expected<training_outcome> outcome_of_stub(const puzzle& which) {
  auto program = [&](rank& self) { return which.stub(self, which.trained); };
  if (!is_written(which, program))
    return make_error(errc::refused, fmt::format("{} is not written yet: there is nothing to show", which.stub_file()));
  return simulate(program, which.trained, which.ranks, puzzle_costs(), true, puzzle_operations_max);
}

puzzle_result check_solution(const puzzle& which) {
  return check(which, [&](rank& self) { return which.solution(self, which.trained); });
}

} // namespace ringmaster
