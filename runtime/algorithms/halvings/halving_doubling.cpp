#include "runtime/algorithms/halvings/halving_doubling.hpp"

#include "runtime/algorithms/halvings/butterfly_blocks.hpp"
#include "runtime/algorithms/halvings/halving.hpp"

namespace ringmaster {

schedule plan_halving_doubling_all_reduce(const plan_request& request) {
  const folded_world world{request.world_size};
  const auto cut = blocks::even(request.count, world.size());
  const auto doubling = world.fold_rounds() + world.levels();
  const auto unfold = doubling + world.levels();
  const workspace work{buffer::output, 0};
  schedule_builder plan{request};
  if (fold_inputs(plan, world, cut, work)) {
    const auto own = cut.at(buffer::output, world.survivor_of(request.rank));
    halve(plan, world, cut, work, own);
    double_up(plan, doubling, world, cut, own);
  }
  unfold_outputs(plan, unfold, world, cut.range(buffer::output, 0, cut.size()));
  return plan.take(unfold + world.fold_rounds());
}

algorithm_cost cost_of_halving_doubling_all_reduce(const plan_request& request) {
  const folded_world world{request.world_size};
  const auto cut = blocks::even(request.count, world.size());
  cost_counter counter{request.world_size};
  count_fold(counter, world, request.count);
  count_halving(counter, world, cut);
  count_doubling(counter, world, cut);
  count_unfold(counter, world, request.count);
  return counter.take();
}

} // namespace ringmaster
