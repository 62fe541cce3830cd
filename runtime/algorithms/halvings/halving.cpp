#include "runtime/algorithms/halvings/halvings.hpp"

namespace ringmaster {

namespace {

/// What a survivor of the halving keeps in scratch: with an extra the whole, otherwise the half that it goes on with.
workspace scratch_for(schedule_builder& plan, const folded_world& world, const blocks& cut) {
  if (world.is_extra(plan.request.rank))
    return {};
  const auto survivor = world.survivor_of(plan.request.rank);
  const auto level = world.has_extra(survivor) ? world.levels() : world.levels() - 1;
  const auto run = halved_run(cut, survivor, level);
  plan.scratch(run.count);
  return {buffer::scratch, run.offset};
}

/// Undoes the halving, lowest level first: a survivor that is another one's upper half sends it what it has collected.
void gather_halves(schedule_builder& plan, const folded_world& world, const blocks& cut, workspace work) {
  const auto survivor = world.survivor_of(plan.request.rank);
  const auto round = world.fold_rounds() + world.levels();
  for (uint32_t level = 0; level < world.levels(); ++level) {
    const auto half = 1u << level;
    if ((survivor & half) != 0) {
      plan.send(round + level, world.rank_of(survivor - half), work.at(halved_run(cut, survivor, level)));
      return;
    }
    plan.recv(round + level, world.rank_of(survivor + half), work.at(halved_run(cut, survivor + half, level)));
  }
}

} // namespace

bool fold_inputs(schedule_builder& plan, const folded_world& world, const blocks& cut, workspace work) {
  const auto rank = plan.request.rank, survivor = world.survivor_of(rank);
  const auto input = cut.range(buffer::input, 0, cut.size());
  if (world.is_extra(rank)) {
    plan.send(0, world.rank_of(survivor), input);
    return false;
  }
  if (world.has_extra(survivor))
    plan.recv_reduce(0, world.extra_of(survivor), input, work.at(input));
  return true;
}

block_range halved_run(const blocks& cut, uint32_t survivor, uint32_t level) {
  const auto group = 1u << level;
  const auto first = survivor & ~(group - 1);
  return cut.range(buffer::input, first, first + group);
}

void halve(schedule_builder& plan, const folded_world& world, const blocks& cut, workspace work, block_range result) {
  const auto survivor = world.survivor_of(plan.request.rank);
  auto have = world.has_extra(survivor) ? work : workspace{buffer::input, 0};
  auto round = world.fold_rounds();
  for (auto level = world.levels(); level-- > 0; ++round) {
    const auto opposite = survivor ^ (1u << level);
    const auto peer = world.rank_of(opposite);
    const auto kept = halved_run(cut, survivor, level);
    plan.send(round, peer, have.at(halved_run(cut, opposite, level)));
    plan.recv_reduce(round, peer, have.at(kept), level == 0 ? result : work.at(kept), level == 0);
    have = work;
  }
}

void count_fold(cost_counter& counter, const folded_world& world, uint64_t elements) {
  for (uint32_t survivor = 0; survivor < world.extras(); ++survivor)
    counter.send(world.extra_of(survivor), world.rank_of(survivor), elements);
  if (world.fold_rounds() != 0)
    counter.end_round();
}

void count_halving(cost_counter& counter, const folded_world& world, const blocks& cut) {
  for (auto level = world.levels(); level-- > 0;) {
    for (uint32_t survivor = 0; survivor < world.size(); ++survivor) {
      const auto opposite = survivor ^ (1u << level);
      counter.send(world.rank_of(survivor), world.rank_of(opposite), halved_run(cut, opposite, level).count);
    }
    counter.end_round();
  }
}

schedule plan_halving_reduce_scatter(const plan_request& request) {
  const folded_world world{request.world_size};
  const auto by_rank = blocks::of(proto::REDUCE_SCATTER, request, request.rank);
  const auto cut = world.merge(by_rank);
  const auto survivor = world.survivor_of(request.rank);
  const auto unfold = world.fold_rounds() + world.levels();
  const auto own = by_rank.at(buffer::input, request.rank);
  const block_range output{buffer::output, 0, own.count};
  schedule_builder plan{request};
  const auto work = scratch_for(plan, world, cut);
  if (!fold_inputs(plan, world, cut, work)) {
    plan.recv(unfold, world.rank_of(survivor), output);
  } else if (world.has_extra(survivor)) {
    halve(plan, world, cut, work, work.at(halved_run(cut, survivor, 0)));
    plan.copy(unfold, work.at(own), output);
    const auto extra = world.extra_of(survivor);
    plan.send(unfold, extra, work.at(by_rank.at(buffer::input, extra)));
  } else {
    halve(plan, world, cut, work, output);
  }
  return plan.take(unfold + world.fold_rounds());
}

algorithm_cost cost_of_halving_reduce_scatter(const plan_request& request) {
  const folded_world world{request.world_size};
  const auto by_rank = blocks::of(proto::REDUCE_SCATTER, request, 0);
  cost_counter counter{request.world_size};
  count_fold(counter, world, by_rank.total());
  count_halving(counter, world, world.merge(by_rank));
  for (uint32_t survivor = 0; survivor < world.extras(); ++survivor)
    counter.send(world.rank_of(survivor), world.extra_of(survivor), by_rank.count(world.extra_of(survivor)));
  if (world.fold_rounds() != 0)
    counter.end_round();
  return counter.take();
}

schedule plan_halving_reduce(const plan_request& request) {
  const folded_world world{request.world_size, request.root};
  const auto cut = blocks::even(request.count, world.size());
  schedule_builder plan{request};
  const auto work = request.rank == request.root ? workspace{buffer::output, 0} : scratch_for(plan, world, cut);
  if (fold_inputs(plan, world, cut, work)) {
    halve(plan, world, cut, work, work.at(halved_run(cut, world.survivor_of(request.rank), 0)));
    gather_halves(plan, world, cut, work);
  }
  return plan.take(world.fold_rounds() + 2 * world.levels());
}

algorithm_cost cost_of_halving_reduce(const plan_request& request) {
  const folded_world world{request.world_size, request.root};
  const auto cut = blocks::even(request.count, world.size());
  cost_counter counter{request.world_size};
  count_fold(counter, world, request.count);
  count_halving(counter, world, cut);
  for (uint32_t level = 0; level < world.levels(); ++level) {
    const auto half = 1u << level;
    for (auto survivor = half; survivor < world.size(); survivor += 2 * half)
      counter.send(world.rank_of(survivor), world.rank_of(survivor - half), halved_run(cut, survivor, level).count);
    counter.end_round();
  }
  return counter.take();
}

} // namespace ringmaster
