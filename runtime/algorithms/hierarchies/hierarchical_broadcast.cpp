#include "runtime/algorithms/hierarchies/hierarchies.hpp"

#include "runtime/algorithms/hierarchies/host_map.hpp"
#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/algorithms/rings/rings.hpp"
#include "runtime/schedule/collective.hpp"

namespace ringmaster {

namespace {

/// The owners of a piece of the shards pass it down a chain of hosts, from `first_round` on, cut as the request wants
/// it.
void chain_across(schedule_builder& plan, const host_map& hosts, const host_shards& shards, const block_range& piece,
                  const pieces& cut, uint32_t first_round) {
  const auto host = hosts.host_of(plan.request.rank);
  const auto v = hosts.before(host, hosts.host_of(plan.request.root)); // counted from the root's
  for (uint32_t i = 0; i < cut.size(); ++i) {
    if (v != 0)
      plan.recv(first_round + v - 1 + i, shards.owner(piece, hosts.before(host, 1)), cut.at(piece.where, i));
    if (v + 1 != hosts.size())
      plan.send(first_round + v + i, shards.owner(piece, hosts.after(host, 1)), cut.at(piece.where, i));
  }
}

} // namespace

schedule plan_hierarchical_broadcast(const plan_request& request) {
  const host_map hosts{request};
  const host_shards shards{hosts, request.count};
  const auto rank = request.rank, root = request.root;
  const auto have = rank == root ? buffer::input : buffer::output;
  const uint32_t across = hosts.company(root) > 1 ? 1 : 0;
  schedule_builder plan{request};
  for (auto x : hosts.ranks(hosts.host_of(root)))
    if (rank == root && x != root)
      plan.send(0, x, shards.of(buffer::input, x));
    else if (rank == x && x != root)
      plan.recv(0, root, shards.of(buffer::output, rank));
  const auto longest = shards.largest_piece(), chunk = pieces::chunk_of(request, longest);
  for (const auto& piece : shards.pieces(have, rank))
    chain_across(plan, hosts, shards, piece, {piece.offset, piece.count, chunk}, across);
  const auto gather = across + (hosts.size() == 1 ? 0 : hosts.size() - 2 + pieces{0, longest, chunk}.size());
  hosts.for_each_meeting(rank, [&](uint32_t round, uint32_t to, uint32_t from) {
    if (to != root)
      plan.send(gather + round, to, shards.of(have, rank));
    if (rank != root)
      plan.recv(gather + round, from, shards.of(buffer::output, from));
  });
  if (rank == root)
    plan.copy(0, {buffer::input, 0, request.count}, {buffer::output, 0, request.count});
  return plan.take(gather + hosts.rounds_within());
}

algorithm_cost cost_of_hierarchical_broadcast(const plan_request& request) {
  const host_map hosts{request};
  const uint64_t n = request.world_size;
  if (hosts.largest() == 1)
    return cost_of_chain_broadcast(request);
  if (hosts.size() > 1)
    return counted_cost(request, plan_hierarchical_broadcast);
  // The root sends every other shard once, and its own to all others.
  const host_shards shards{hosts, request.count};
  const auto own = shards.of(buffer::input, request.root).count, largest = shards.of(buffer::input, 0).count;
  const auto with_elements = std::min(request.count, n);
  const auto from_root = request.count - own + (n - 1) * own, from_other = (n - 2) * largest;
  const auto messages_of_root = with_elements + (own != 0 ? n - 2 : 0);
  return {n, std::max(from_root, from_other), std::max({messages_of_root, with_elements, n - 2}), n,
          request.count - own + (n - 1) * largest};
}

} // namespace ringmaster
