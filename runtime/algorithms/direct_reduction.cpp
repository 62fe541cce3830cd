#include "runtime/algorithms/direct_reduction.hpp"

#include "runtime/blocks.hpp"
#include "runtime/schedule_builder.hpp"

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
void chain(schedule_builder& plan, block_range own, block_range sum) {
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

/// `count` elements in nearly equal blocks, one for each rank, the larger ones last. A shorter chain behind a longer
/// one would overtake it, where it passes by its own rank. As none does, all messages go over the ports in the same
/// order as with blocks of one size, and take no longer than if all were as large as the last.
blocks even_rising(uint64_t count, uint32_t parts) {
  std::vector<uint64_t> counts;
  counts.reserve(parts);
  for (uint32_t i = parts; i-- > 0;)
    counts.push_back(block_of(buffer::input, count, parts, i).count);
  return blocks::of(counts);
}

uint64_t largest_of(const blocks& rising) { return rising.count(rising.size() - 1); }

/// Blocks that follow each other in the chains, where all have one size: N-1 in rank 0's chain, and every next chain
/// ends one later, but the last with the one before it, as no rank receives from itself.
uint64_t chain_blocks(uint64_t n, uint64_t rank) { return n - 1 + std::min(rank, n - 2); }

} // namespace

schedule plan_direct_reduce_scatter(const plan_request& request) {
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, request.rank);
  schedule_builder plan{request};
  send_to_chains(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  chain(plan, cut.at(buffer::input, request.rank), {buffer::output, 0, cut.count(request.rank)});
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
  const auto sent = cut.total() - smallest;
  if (largest == smallest)
    return {1, sent, n - 1, n - 1, chain_blocks(n, n - 1) * largest};
  // Chains may overtake each other. By induction over the ports, the i-th block that comes to port k has gone through
  // it after i + k blocks of the largest size and k + 1 latencies at most.
  return {1, sent, n - 1, n, (2 * n - 2) * largest};
}

schedule plan_direct_all_reduce(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank;
  const auto cut = even_rising(request.count, n);
  const auto own = cut.at(buffer::output, rank);
  schedule_builder plan{request};
  send_to_chains(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  chain(plan, cut.at(buffer::input, rank), own);
  for (uint32_t peer = 0; peer < n; ++peer)
    if (peer != rank)
      plan.send(1, peer, own);
  for (uint32_t peer = 0; peer < n; ++peer)
    if (peer != rank)
      plan.recv(1, peer, cut.at(buffer::output, peer));
  return plan.take(2);
}

algorithm_cost cost_of_direct_all_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto largest = largest_of(even_rising(request.count, request.world_size));
  // Rank i's block goes to rank j as number i + j after the end of rank 0's chain: no other one of the same sender or
  // receiver does, and by then both chains have ended. With two ranks both end at once.
  const auto serial_blocks = n == 2 ? 2 : n - 1 + (n - 1) + (n - 2) + 1;
  return {2, request.count + (n - 2) * largest, n - 1 + std::min(request.count, n) - 1, n, serial_blocks * largest};
}

schedule plan_direct_reduce(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank, root = request.root;
  const auto cut = even_rising(request.count, n);
  schedule_builder plan{request};
  const auto sum = rank == root ? cut.at(buffer::output, rank)
                                : block_range{buffer::scratch, plan.scratch(cut.count(rank)), cut.count(rank)};
  send_to_chains(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  chain(plan, cut.at(buffer::input, rank), sum);
  if (rank != root)
    plan.send(1, root, sum);
  else
    for (uint32_t peer = 0; peer < n; ++peer)
      if (peer != root)
        plan.recv(1, peer, cut.at(buffer::output, peer));
  return plan.take(2);
}

algorithm_cost cost_of_direct_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = even_rising(request.count, request.world_size);
  const auto with_elements = std::min(request.count, n);
  const auto at_root = cut.count(request.root) != 0 ? n - 1 + with_elements - 1 : with_elements;
  // The root's port is busy from the end of its own chain on, rank 0's from that of the next one.
  const auto serial_blocks = chain_blocks(n, std::max(request.root, 1u)) + n - 1;
  return {2, request.count, std::max(n - 1, at_root), n, serial_blocks * largest_of(cut)};
}

schedule plan_one_shot_all_reduce(const plan_request& request) {
  const block_range input{buffer::input, 0, request.count};
  schedule_builder plan{request};
  send_to_chains(plan, [&](uint32_t) { return input; });
  chain(plan, input, {buffer::output, 0, request.count});
  return plan.take(1);
}

algorithm_cost cost_of_one_shot_all_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  return {1, (n - 1) * request.count, n - 1, n - 1, chain_blocks(n, n - 1) * request.count};
}

} // namespace ringmaster
