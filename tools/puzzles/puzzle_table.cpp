#include "tools/puzzles/puzzle_table.hpp"

#include "tools/puzzles/puzzle_programs.hpp"
#include "training/strategies/strategies.hpp"

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
  return {
    {0,
     "standard training",
     1,
     {2, 4},
     task_0,
     16.5,
     2'621'440,
     puzzle_0,
     solution_0,
     "examples/puzzles/solution_0.cpp"},
    {1,
     "gradient accumulation",
     1,
     {2, 4},
     task_1,
     16.5,
     1'966'080,
     puzzle_1,
     solution_1,
     "examples/puzzles/solution_1.cpp"},
    {2,
     "distributed data parallel",
     4,
     {2, 4},
     task_2,
     5.1,
     1'835'008,
     puzzle_2,
     data_parallel.run,
     "training/strategies/data_parallel.cpp"},
    {3,
     "weight-sharded data parallel",
     4,
     {6, 4},
     task_3,
     19.9,
     2'752'512,
     puzzle_3,
     weight_sharded.run,
     "training/strategies/weight_sharded.cpp"},
    {4,
     "fully sharded data parallel",
     4,
     {6, 4},
     task_4,
     19.9,
     2'359'296,
     puzzle_4,
     zero_3.run,
     "training/strategies/zero_3.cpp"},
    {5,
     "pipeline",
     4,
     {8, 4},
     task_5,
     66.9,
     3'145'728,
     puzzle_5,
     whole_batch_pipeline.run,
     "training/strategies/pipelines/whole_batch_pipeline.cpp"},
    {6, "GPipe", 4, {8, 4}, task_6, 33.3, 4'194'304, puzzle_6, gpipe.run, "training/strategies/pipelines/gpipe.cpp"},
    {7,
     "pipeline with FSDP",
     16,
     {.layers = 4, .global_batch = 4, .parallel = {.dp = 4}},
     task_7,
     15.5,
     966'656,
     puzzle_7,
     sharded_pipeline.run,
     "training/strategies/pipelines/sharded_pipeline.cpp"},
  };
}

} // namespace

std::span<const puzzle> puzzles() {
  static const auto all = listed();
  return all;
}

} // namespace ringmaster
