// Puzzle 7: pipeline with FSDP. 16 ranks, 4 layers, 4 samples.
//
// Every layer is a stage of 4 ranks, and every sample goes through a rank of each stage. The ranks of a stage share
// its weight, optimizer state and gradient as in puzzle 4, and talk to the neighbouring stages as in puzzle 5.
//
// Use: what puzzles 4 and 5 use. mesh shape{.data = 4, .pipeline = 4} says which stage and sample a rank has, who
// is in its data_group, which a collective takes as its second argument, and at_stage whom it sends to.
// Target: time 15.5, peak memory 966,656.
#include <ringmaster/strategy.hpp>

namespace ringmaster::training {

strategy puzzle_7(rank& self, const model& m) {
  co_return; // Your program goes here.
}

} // namespace ringmaster::training
