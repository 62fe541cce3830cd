#include "runtime/algorithms/exchanges/exchanges.hpp"

#include "runtime/schedule/collective.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// The round of `rank`, where the root deals with the others in their order.
uint32_t turn_of(uint32_t rank, uint32_t root) {
  return rank < root ? rank : rank - 1;
}

/// The root's output gets the blocks of all ranks.
void gather(schedule_builder& plan, const blocks& cut, uint32_t root) {
  const auto rank = plan.request.rank;
  const block_range own{buffer::input, 0, cut.count(rank)};
  if (rank != root) {
    plan.send(turn_of(rank, root), root, own);
    return;
  }
  plan.copy(0, own, cut.at(buffer::output, root));
  for (uint32_t from = 0; from < cut.size(); ++from)
    if (from != root)
      plan.recv(turn_of(from, root), from, cut.at(buffer::output, from));
}

/// A gather or a scatter: what goes through the root's port is all there is.
algorithm_cost cost_at_root(const blocks& cut, uint32_t root, uint64_t elements_at_busiest) {
  uint64_t messages = 0;
  for (uint32_t rank = 0; rank < cut.size(); ++rank)
    messages += rank != root && cut.count(rank) != 0 ? 1 : 0;
  return {cut.size() - 1u, elements_at_busiest, messages, messages, cut.total() - cut.count(root)};
}

} // namespace

schedule plan_naive_reduce_scatter(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank;
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, rank);
  const auto input = cut.range(buffer::input, 0, n);
  const block_range own{buffer::output, 0, cut.count(rank)};
  schedule_builder plan{request};
  if (rank != 0) {
    plan.send(rank - 1, 0, input);
    plan.recv(n - 1, 0, own);
    return plan.take(n);
  }
  plan.scratch(cut.total());
  const auto sum = cut.range(buffer::scratch, 0, n);
  for (uint32_t from = 1; from < n; ++from)
    plan.recv_reduce(from - 1, from, from == 1 ? input : sum, sum, from + 1 == n);
  plan.copy(n - 1, cut.at(buffer::scratch, 0), own);
  for (uint32_t to = 1; to < n; ++to)
    plan.send(n - 1, to, cut.at(buffer::scratch, to));
  return plan.take(n);
}

algorithm_cost cost_of_naive_reduce_scatter(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, 0);
  const auto scattered = cut.total() - cut.count(0);
  return {n, cut.total(), n - 1, n - 1 + (scattered != 0 ? 1 : 0), (n - 1) * cut.total() + scattered};
}

schedule plan_naive_all_gather(const plan_request& request) {
  const auto n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, request.rank);
  const auto all = cut.range(buffer::output, 0, n);
  schedule_builder plan{request};
  gather(plan, cut, 0);
  if (request.rank != 0)
    plan.recv(n - 1, 0, all);
  else
    for (uint32_t to = 1; to < n; ++to)
      plan.send(n - 1, to, all);
  return plan.take(n);
}

algorithm_cost cost_of_naive_all_gather(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, 0);
  auto cost = cost_at_root(cut, 0, (n - 1) * cut.total());
  return {n, cost.elements, n - 1, cost.latencies + 1, cost.serial_elements + (n - 1) * cut.total()};
}

schedule plan_naive_gather(const plan_request& request) {
  schedule_builder plan{request};
  gather(plan, blocks::of(proto::GATHER, request, request.rank), request.root);
  return plan.take(request.world_size - 1);
}

algorithm_cost cost_of_naive_gather(const plan_request& request) {
  const auto cut = blocks::of(proto::GATHER, request, 0);
  uint64_t largest = 0;
  for (uint32_t rank = 0; rank < cut.size(); ++rank)
    largest = std::max(largest, rank == request.root ? 0 : cut.count(rank));
  return cost_at_root(cut, request.root, largest);
}

schedule plan_naive_scatter(const plan_request& request) {
  const auto rank = request.rank, root = request.root;
  const auto cut = blocks::of(proto::SCATTER, request, rank);
  const block_range own{buffer::output, 0, cut.count(rank)};
  schedule_builder plan{request};
  if (rank != root) {
    plan.recv(turn_of(rank, root), root, own);
    return plan.take(request.world_size - 1);
  }
  plan.copy(0, cut.at(buffer::input, root), own);
  for (uint32_t to = 0; to < cut.size(); ++to)
    if (to != root)
      plan.send(turn_of(to, root), to, cut.at(buffer::input, to));
  return plan.take(request.world_size - 1);
}

algorithm_cost cost_of_naive_scatter(const plan_request& request) {
  const auto cut = blocks::of(proto::SCATTER, request, 0);
  return cost_at_root(cut, request.root, cut.total() - cut.count(request.root));
}

} // namespace ringmaster
