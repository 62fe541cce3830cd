// Puzzle 5: pipeline. 4 ranks, 8 layers, 4 samples.
//
// Every rank has two layers of its own, whole. All samples go through them at once: their activations from rank to
// rank up to the loss, the gradients by them all the way back. No collective is needed, and the ranks mostly wait.
//
// Use: what puzzle 0 uses, send and receive<activation> or receive<activation_gradient>. layers_of(m, self.index(),
// self.world_size()) is a rank's range of layers; self.first(), last(), next() and previous() say where it stands.
// Target: time 66.9, peak memory 3,145,728.
#include <ringmaster/strategy.hpp>

namespace ringmaster::training {

strategy puzzle_5(rank& self, const model& m) {
  co_return; // Your program goes here.
}

} // namespace ringmaster::training
