#include "runtime/algorithms/halvings/halvings.hpp"

#include "runtime/schedule/collective.hpp"

#include <bit>

namespace ringmaster {

namespace {

/// The sums of one rank. Each arises in another place than the one before.
class sums {
public:
  /// `arising`: how many will arise; the last one in the output.
  sums(schedule_builder& b, uint32_t arising) : b_(b), left_(arising), now_{buffer::input, 0, b.request.count} {
    if (arising > 1)
      b.scratch(b.request.count);
  }

  const block_range& now() const { return now_; }

  /// Takes what comes in from `peer` into the next sum.
  void add(uint32_t round, uint32_t peer) {
    --left_;
    const block_range next{left_ % 2 == 0 ? buffer::output : buffer::scratch, 0, now_.count};
    b_.recv_reduce(round, peer, now_, next, left_ == 0);
    now_ = next;
  }

private:
  schedule_builder& b_;
  uint32_t left_;
  block_range now_;
};

} // namespace

schedule plan_butterfly_all_reduce(const plan_request& request) {
  schedule_builder b{request};
  const auto doubling = std::bit_floor(request.world_size); // ranks that take part in it
  const auto exchanges = static_cast<uint32_t>(std::countr_zero(doubling));
  const uint32_t folds = request.world_size == doubling ? 0 : 1;
  const auto rounds = exchanges + 2 * folds;
  const block_range output{buffer::output, 0, request.count};
  if (request.rank >= doubling) {
    b.send(0, request.rank - doubling, {buffer::input, 0, request.count});
    b.recv(rounds - 1, request.rank - doubling, output);
    return b.take(rounds);
  }
  const auto is_partner = request.rank + doubling < request.world_size;
  sums sum{b, exchanges + (is_partner ? 1 : 0)};
  if (is_partner)
    sum.add(0, request.rank + doubling);
  for (uint32_t k = 0; k < exchanges; ++k) {
    const auto peer = request.rank ^ (uint32_t{1} << k);
    b.send(folds + k, peer, sum.now());
    sum.add(folds + k, peer);
  }
  if (is_partner)
    b.send(rounds - 1, request.rank + doubling, output);
  return b.take(rounds);
}

algorithm_cost cost_of_butterfly_all_reduce(const plan_request& request) {
  const uint64_t exchanges = std::bit_width(request.world_size) - 1;
  const uint64_t folds = std::has_single_bit(request.world_size) ? 0 : 1;
  const auto rounds = exchanges + 2 * folds;
  return {rounds, (exchanges + folds) * request.count, exchanges + folds, rounds, rounds * request.count};
}

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
