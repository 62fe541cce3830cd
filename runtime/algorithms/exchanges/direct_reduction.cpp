#include "runtime/algorithms/exchanges/exchanges.hpp"

#include "runtime/schedule/collective.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// Round 0 at the sender: `block_for(peer)` of the input to every other rank, in the order in which their chains ask.
template <class F>
void send_to_chains(schedule_builder& plan, F block_for) {
  for (uint32_t to = 0; to < plan.request.world_size; ++to)
    if (to != plan.request.rank)
      plan.send(0, to, block_for(to));
}

/// Round 0 at the receiver: `own`, a range of the input, reduced over all ranks in their order, at `sum`.
void add_chain(schedule_builder& plan, block_range own, block_range sum) {
  const auto n = plan.request.world_size, rank = plan.request.rank;
  if (own.count == 0)
    return;
  for (uint32_t from = rank == 0 ? 1 : 0, first = from; from < n; ++from) {
    if (rank >= 2 && from == rank)
      plan.reduce(0, own, sum, from + 1 == n);
    else if (rank >= 2 && from == 0)
      plan.recv(0, from, sum);
    else if (from == first) // x0 + x1, of which this rank has one
      plan.recv_reduce(0, from, own, sum, n == 2);
    else if (from != rank)
      plan.recv_reduce(0, from, sum, sum, from + 1 == n);
    else
      continue;
    if (from != first)
      plan.then();
  }
}

/// All chains, over blocks of at most `largest` elements. Where they have different sizes, one that is short may come
/// between others: by induction over the ports, the i-th block that comes to port k is there after i + k blocks of the
/// largest size and k + 1 latencies at most.
algorithm_cost cost_of_chains(uint64_t n, uint64_t largest, bool same_size) {
  algorithm_cost cost;
  cost.rounds = 1;
  cost.latencies = same_size ? n - 1 : n;
  cost.serial_elements = (same_size ? 2 * n - 3 : 2 * n - 2) * largest;
  return cost;
}

} // namespace

schedule plan_direct_reduce_scatter(const plan_request& request) {
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, request.rank);
  schedule_builder plan{request};
  send_to_chains(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  add_chain(plan, cut.at(buffer::input, request.rank), {buffer::output, 0, cut.count(request.rank)});
  return plan.take(1);
}

algorithm_cost cost_of_direct_reduce_scatter(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, 0);
  uint64_t largest = 0, smallest = cut.total();
  for (uint32_t i = 0; i < n; ++i) {
    largest = std::max(largest, cut.count(i));
    smallest = std::min(smallest, cut.count(i));
  }
  auto cost = cost_of_chains(n, largest, largest == smallest);
  cost.elements = cut.total() - smallest;
  cost.messages = n - 1; // a block with elements comes N-1 times
  return cost;
}

schedule plan_direct_all_reduce(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank;
  const auto cut = blocks::even(request.count, n);
  const auto own = cut.at(buffer::output, rank);
  schedule_builder plan{request};
  send_to_chains(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  add_chain(plan, cut.at(buffer::input, rank), own);
  for (uint32_t t = 1; t < n; ++t)
    plan.send(1, (rank + t) % n, own);
  for (uint32_t t = 1; t < n; ++t)
    plan.recv(1, (rank + n - t) % n, cut.at(buffer::output, (rank + n - t) % n));
  return plan.take(2);
}

algorithm_cost cost_of_direct_all_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::even(request.count, request.world_size);
  const auto largest = cut.count(0);
  const auto same_size = request.count % n == 0;
  auto cost = cost_of_chains(n, largest, same_size);
  return {2, request.count + (n - 2) * largest, n - 1 + std::min(request.count, n) - 1, cost.latencies + 1,
          cost.serial_elements + (same_size ? n - 1 : 2 * (n - 1)) * largest};
}

schedule plan_direct_reduce(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank, root = request.root;
  const auto cut = blocks::even(request.count, n);
  schedule_builder plan{request};
  const auto sum = rank == root ? cut.at(buffer::output, rank)
                                : block_range{buffer::scratch, plan.scratch(cut.count(rank)), cut.count(rank)};
  send_to_chains(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  add_chain(plan, cut.at(buffer::input, rank), sum);
  if (rank != root)
    plan.send(1, root, sum);
  else
    for (uint32_t t = 1; t < n; ++t)
      plan.recv(1, (rank + n - t) % n, cut.at(buffer::output, (rank + n - t) % n));
  return plan.take(2);
}

algorithm_cost cost_of_direct_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::even(request.count, request.world_size);
  const auto with_elements = std::min(request.count, n);
  const auto at_root = cut.count(request.root) != 0 ? n - 1 + with_elements - 1 : with_elements;
  auto cost = cost_of_chains(n, cut.count(0), request.count % n == 0);
  cost.rounds = 2;
  cost.elements = request.count;
  cost.messages = std::max(n - 1, at_root);
  ++cost.latencies;
  if (request.count % n == 0) // the chains end a block apart, and the root's port is busy from its own one's end on
    cost.serial_elements = (n - 1 + std::min<uint64_t>(std::max(request.root, 1u), n - 2) + n - 1) * cut.count(0);
  else
    cost.serial_elements += request.count - cut.count(request.root);
  return cost;
}

schedule plan_one_shot_all_reduce(const plan_request& request) {
  const block_range input{buffer::input, 0, request.count};
  schedule_builder plan{request};
  send_to_chains(plan, [&](uint32_t) { return input; });
  add_chain(plan, input, {buffer::output, 0, request.count});
  return plan.take(1);
}

algorithm_cost cost_of_one_shot_all_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  auto cost = cost_of_chains(n, request.count, true);
  cost.elements = (n - 1) * request.count;
  cost.messages = n - 1;
  return cost;
}

} // namespace ringmaster
