#include "runtime/algorithms/hierarchies/hierarchies.hpp"

#include "runtime/algorithms/hierarchies/host_map.hpp"
#include "runtime/algorithms/rings/rings.hpp"
#include "runtime/schedule/collective.hpp"

#include <map>

namespace ringmaster {

namespace {

/// The owners of `piece` add it up in a ring of hosts, from `first_round` on. This rank has its host's sum of it in
/// `have`; the whole sum arises in the output.
void ring_across(schedule_builder& plan, const host_map& hosts, const host_shards& shards, const block_range& piece,
                 uint32_t first_round, buffer have) {
  const auto h = hosts.size(), host = hosts.host_of(plan.request.rank);
  const auto next = shards.owner(piece, hosts.after(host, 1)), previous = shards.owner(piece, hosts.before(host, 1));
  auto part = [&](buffer where, uint32_t index) {
    auto result = block_of(where, piece.count, h, index);
    result.offset += piece.offset;
    return result;
  };
  for (uint32_t t = 0; t + 1 < h; ++t) {
    const auto met = hosts.before(host, t + 1);
    plan.send(first_round + t, next, part(t == 0 ? have : buffer::output, hosts.before(host, t)));
    plan.recv_reduce(first_round + t, previous, part(have, met), part(buffer::output, met), t + 2 == h);
  }
  const auto own = hosts.after(host, 1);
  for (uint32_t t = 0; t + 1 < h; ++t) {
    plan.send(first_round + h - 1 + t, next, part(buffer::output, hosts.before(own, t)));
    plan.recv(first_round + h - 1 + t, previous, part(buffer::output, hosts.before(own, t + 1)));
  }
}

} // namespace

schedule plan_hierarchical_all_reduce(const plan_request& request) {
  const host_map hosts{request};
  const host_shards shards{hosts, request.count};
  const auto rank = request.rank, company = hosts.company(rank);
  schedule_builder plan{request};
  const auto sum = shards.of(buffer::output, rank);
  hosts.for_each_meeting(rank, [&](uint32_t round, uint32_t to, uint32_t from) {
    plan.send(round, to, shards.of(buffer::input, to));
    plan.recv_reduce(round, from, round == 0 ? shards.of(buffer::input, rank) : sum, sum,
                     round + 2 == company && hosts.size() == 1);
  });
  const auto across = hosts.rounds_within();
  const auto have = company == 1 ? buffer::input : buffer::output;
  if (hosts.size() > 1)
    for (const auto& piece : shards.pieces(have, rank))
      ring_across(plan, hosts, shards, piece, across, have);
  const auto gather = across + 2 * (hosts.size() - 1);
  hosts.for_each_meeting(rank, [&](uint32_t round, uint32_t to, uint32_t from) {
    plan.send(gather + round, to, sum);
    plan.recv(gather + round, from, shards.of(buffer::output, from));
  });
  return plan.take(gather + hosts.rounds_within());
}

schedule plan_hierarchical_reduce_scatter(const plan_request& request) {
  const host_map hosts{request};
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, request.rank);
  const auto rank = request.rank, host = hosts.host_of(rank), company = hosts.company(rank);
  schedule_builder plan{request};
  std::map<uint32_t, block_range> sums{{rank, {buffer::output, 0, cut.count(rank)}}}; // by rank that they are for
  if (company > 1)
    for (auto x : hosts.partners(rank))
      sums.emplace(x, block_range{buffer::scratch, plan.scratch(cut.count(x)), cut.count(x)});
  hosts.for_each_meeting(rank, [&](uint32_t round, uint32_t to, uint32_t from) {
    plan.send(round, to, cut.at(buffer::input, to));
    for (auto x : hosts.partners(to))
      plan.send(round, to, cut.at(buffer::input, x));
    auto add = [&](uint32_t x, bool finish) {
      plan.recv_reduce(round, from, round == 0 ? cut.at(buffer::input, x) : sums.at(x), sums.at(x), finish);
    };
    add(rank, round + 2 == company && hosts.size() == 1);
    for (auto x : hosts.partners(rank))
      add(x, false);
  });
  auto have = [&](uint32_t x) { return company == 1 ? cut.at(buffer::input, x) : sums.at(x); };
  const auto& own = sums.at(rank);
  for (uint32_t t = 1; t < hosts.size(); ++t) {
    const auto round = hosts.rounds_within() + t - 1;
    for (auto x : hosts.partners(rank, hosts.after(host, t)))
      plan.send(round, x, have(x));
    plan.recv_reduce(round, hosts.partner_of(rank, hosts.before(host, t)), t == 1 ? have(rank) : own, own,
                     t + 1 == hosts.size());
  }
  return plan.take(hosts.rounds_within() + hosts.rounds_across());
}

algorithm_cost cost_of_hierarchical_all_reduce(const plan_request& request) {
  const host_map hosts{request};
  if (hosts.largest() == 1)
    return cost_of_ring_all_reduce(request);
  if (hosts.size() > 1)
    return counted_cost(request, plan_hierarchical_all_reduce);
  const uint64_t n = request.world_size;
  const auto cut = blocks::even(request.count, request.world_size);
  const auto largest = cut.count(0), with_elements = std::min(request.count, n);
  // The first rank has most to send: what is not its own, and its own to all others.
  return {2 * (n - 1), request.count - largest + (n - 1) * largest, with_elements - 1 + n - 1, 2 * (n - 1),
          2 * (n - 1) * largest};
}

algorithm_cost cost_of_hierarchical_reduce_scatter(const plan_request& request) {
  return host_map{request}.has_one_level() ? cost_of_pairwise_reduce_scatter(request)
                                           : counted_cost(request, plan_hierarchical_reduce_scatter);
}

} // namespace ringmaster
