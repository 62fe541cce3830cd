#include "runtime/algorithms/halvings/butterfly_blocks.hpp"

#include "runtime/algorithms/halvings/halving.hpp"

namespace ringmaster {

void double_up(schedule_builder& plan, uint32_t round, const folded_world& world, const blocks& cut, block_range own) {
  const auto survivor = world.survivor_of(plan.request.rank);
  const workspace output{buffer::output, 0};
  for (uint32_t level = 0; level < world.levels(); ++level) {
    const auto opposite = survivor ^ (1u << level);
    const auto peer = world.rank_of(opposite);
    plan.send(round + level, peer, level == 0 ? own : output.at(halved_run(cut, survivor, level)));
    plan.recv(round + level, peer, output.at(halved_run(cut, opposite, level)));
  }
}

void unfold_outputs(schedule_builder& plan, uint32_t round, const folded_world& world, block_range output) {
  const auto survivor = world.survivor_of(plan.request.rank);
  if (world.is_extra(plan.request.rank))
    plan.recv(round, world.rank_of(survivor), output);
  else if (world.has_extra(survivor))
    plan.send(round, world.extra_of(survivor), output);
}

void count_doubling(cost_counter& counter, const folded_world& world, const blocks& cut) {
  for (uint32_t level = 0; level < world.levels(); ++level) {
    for (uint32_t survivor = 0; survivor < world.size(); ++survivor)
      counter.send(world.rank_of(survivor), world.rank_of(survivor ^ (1u << level)),
                   halved_run(cut, survivor, level).count);
    counter.end_round();
  }
}

void count_unfold(cost_counter& counter, const folded_world& world, uint64_t elements) {
  for (uint32_t survivor = 0; survivor < world.extras(); ++survivor)
    counter.send(world.rank_of(survivor), world.extra_of(survivor), elements);
  if (world.fold_rounds() != 0)
    counter.end_round();
}

schedule plan_butterfly_all_gather(const plan_request& request) {
  const folded_world world{request.world_size};
  const auto by_rank = blocks::of(proto::ALL_GATHER, request, request.rank);
  const auto cut = world.merge(by_rank);
  const auto survivor = world.survivor_of(request.rank);
  const block_range own{buffer::input, 0, by_rank.count(request.rank)};
  schedule_builder plan{request};
  if (world.is_extra(request.rank)) {
    plan.send(0, world.rank_of(survivor), own);
  } else {
    plan.copy(0, own, by_rank.at(buffer::output, request.rank));
    if (world.has_extra(survivor))
      plan.recv(0, world.extra_of(survivor), by_rank.at(buffer::output, world.extra_of(survivor)));
    double_up(plan, world.fold_rounds(), world, cut,
              world.has_extra(survivor) ? cut.at(buffer::output, survivor) : own);
  }
  const auto unfold = world.fold_rounds() + world.levels();
  unfold_outputs(plan, unfold, world, cut.range(buffer::output, 0, cut.size()));
  return plan.take(unfold + world.fold_rounds());
}

algorithm_cost cost_of_butterfly_all_gather(const plan_request& request) {
  const folded_world world{request.world_size};
  const auto by_rank = blocks::of(proto::ALL_GATHER, request, 0);
  cost_counter counter{request.world_size};
  for (uint32_t survivor = 0; survivor < world.extras(); ++survivor)
    counter.send(world.extra_of(survivor), world.rank_of(survivor), by_rank.count(world.extra_of(survivor)));
  if (world.fold_rounds() != 0)
    counter.end_round();
  count_doubling(counter, world, world.merge(by_rank));
  count_unfold(counter, world, by_rank.total());
  return counter.take();
}

} // namespace ringmaster
