#include "runtime/algorithms/halvings/halvings.hpp"

#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/algorithms/rings/rings.hpp"

namespace ringmaster {

namespace {

/// Calls f(round, parent, child, blocks from the child's on) for every edge of the scatter's tree, round by round.
template <class F>
void for_each_edge(uint32_t n, F f) {
  const auto rounds = doublings(n);
  for (uint32_t round = 0; round < rounds; ++round) {
    const auto half = 1u << (rounds - 1 - round);
    for (uint64_t child = half; child < n; child += 2 * uint64_t{half}) {
      const auto place = static_cast<uint32_t>(child);
      f(round, place - half, place, std::min(half, n - place));
    }
  }
}

} // namespace

schedule plan_scatter_all_gather_broadcast(const plan_request& request) {
  const auto n = request.world_size, root = request.root;
  const auto place = (request.rank + n - root) % n;
  const auto cut = blocks::even(request.count, n);
  schedule_builder plan{request};
  if (place == 0)
    plan.copy(0, cut.range(buffer::input, 0, n), cut.range(buffer::output, 0, n));
  for_each_edge(n, [&](uint32_t round, uint32_t parent, uint32_t child, uint32_t length) {
    const auto subtree = cut.range(place == 0 ? buffer::input : buffer::output, child, child + length);
    if (parent == place)
      plan.send(round, (child + root) % n, subtree);
    else if (child == place)
      plan.recv(round, (parent + root) % n, subtree);
  });
  gather_all(plan, doublings(n), cut, cut.at(buffer::output, place), root, false);
  return plan.take(2 * doublings(n));
}

algorithm_cost cost_of_scatter_all_gather_broadcast(const plan_request& request) {
  const auto n = request.world_size, root = request.root;
  const auto cut = blocks::even(request.count, n);
  cost_counter counter{n};
  uint32_t open = 0;
  for_each_edge(n, [&](uint32_t round, uint32_t parent, uint32_t child, uint32_t length) {
    for (; open < round; ++open)
      counter.end_round();
    counter.send((parent + root) % n, (child + root) % n, cut.range(buffer::output, child, child + length).count);
  });
  counter.end_round();
  count_all_gather(counter, cut, root, false);
  return counter.take();
}

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
