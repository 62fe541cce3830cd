#include "runtime/algorithms/hierarchies/hierarchies.hpp"

#include "runtime/algorithms/hierarchies/host_map.hpp"
#include "runtime/algorithms/rings/rings.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <map>

namespace ringmaster {

namespace {

/// What a rank holds of its host's blocks for other hosts' ranks, whose partner it is: for each of them one bundle,
/// with a block of every rank of the host. A rank alone on its host has them in its input.
class outgoing_bundles {
public:
  outgoing_bundles(schedule_builder& plan, const host_map& hosts) : rank_(plan.request.rank) {
    for (auto from : hosts.ranks(hosts.host_of(rank_)))
      rows_.emplace(from, blocks::of(proto::ALL_TO_ALL, plan.request, from));
    if (rows_.size() == 1)
      return;
    for (auto to : hosts.partners(rank_))
      for (auto& [from, row] : rows_)
        starts_[{to, from}] = plan.scratch(row.count(to));
  }

  block_range at(uint32_t to, uint32_t from) const { return at(to, from, from); }
  /// Of these ranks, which follow each other.
  block_range at(uint32_t to, uint32_t first, uint32_t last) const {
    if (starts_.empty())
      return rows_.at(rank_).at(buffer::input, to);
    const auto start = starts_.at({to, first});
    return {buffer::scratch, start, starts_.at({to, last}) + rows_.at(last).count(to) - start};
  }

private:
  uint32_t rank_;
  std::map<uint32_t, blocks> rows_;                          ///< By rank of the host: its input.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> starts_; ///< By whom it is for, and whose it is.
};

/// Calls f(first, last) for the runs of ranks of a host that follow each other.
template <class F>
void for_each_run(const std::vector<uint32_t>& ranks, F&& f) {
  for (size_t first = 0, last = 0; first < ranks.size(); first = ++last) {
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    f(ranks[first], ranks[last]);
  }
}

} // namespace

schedule plan_hierarchical_all_gather(const plan_request& request) {
  const host_map hosts{request};
  const auto cut = blocks::of(proto::ALL_GATHER, request, request.rank);
  const auto rank = request.rank, host = hosts.host_of(rank), within = hosts.rounds_across();
  const block_range own{buffer::input, 0, cut.count(rank)};
  schedule_builder plan{request};
  plan.copy(0, own, cut.at(buffer::output, rank));
  for (uint32_t t = 1; t < hosts.size(); ++t) {
    plan.send(t - 1, hosts.partner_of(rank, hosts.after(host, t)), own);
    for (auto x : hosts.partners(rank, hosts.before(host, t)))
      plan.recv(t - 1, x, cut.at(buffer::output, x));
  }
  hosts.for_each_meeting(rank, [&](uint32_t round, uint32_t to, uint32_t from) {
    plan.send(within + round, to, own);
    for (auto x : hosts.partners(rank))
      plan.send(within + round, to, cut.at(buffer::output, x));
    plan.recv(within + round, from, cut.at(buffer::output, from));
    for (auto x : hosts.partners(from))
      plan.recv(within + round, from, cut.at(buffer::output, x));
  });
  return plan.take(within + hosts.rounds_within());
}

schedule plan_hierarchical_all_to_all(const plan_request& request) {
  const host_map hosts{request};
  const auto rank = request.rank, host = hosts.host_of(rank), across = hosts.rounds_within();
  const auto sent = blocks::of(proto::ALL_TO_ALL, request, rank);
  const auto received = blocks::received(request, rank);
  schedule_builder plan{request};
  const outgoing_bundles bundles{plan, hosts};
  plan.copy(0, sent.at(buffer::input, rank), received.at(buffer::output, rank));
  if (hosts.company(rank) > 1)
    for (auto x : hosts.partners(rank))
      plan.copy(0, sent.at(buffer::input, x), bundles.at(x, rank));
  hosts.for_each_meeting(rank, [&](uint32_t round, uint32_t to, uint32_t from) {
    plan.send(round, to, sent.at(buffer::input, to));
    for (auto x : hosts.partners(to))
      plan.send(round, to, sent.at(buffer::input, x));
    plan.recv(round, from, received.at(buffer::output, from));
    for (auto x : hosts.partners(rank))
      plan.recv(round, from, bundles.at(x, from));
  });
  for (uint32_t t = 1; t < hosts.size(); ++t) {
    const auto before = hosts.before(host, t);
    for (auto x : hosts.partners(rank, hosts.after(host, t)))
      for_each_run(hosts.ranks(host),
                   [&](uint32_t first, uint32_t last) { plan.send(across + t - 1, x, bundles.at(x, first, last)); });
    for_each_run(hosts.ranks(before), [&](uint32_t first, uint32_t last) {
      plan.recv(across + t - 1, hosts.partner_of(rank, before), received.range(buffer::output, first, last + 1));
    });
  }
  return plan.take(across + hosts.rounds_across());
}

algorithm_cost cost_of_hierarchical_all_gather(const plan_request& request) {
  if (!host_map{request}.has_one_level())
    return counted_cost(request, plan_hierarchical_all_gather);
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, 0);
  uint64_t largest = 0;
  for (uint32_t i = 0; i < n; ++i)
    largest = std::max(largest, cut.count(i));
  return {n - 1, (n - 1) * largest, n - 1, n - 1, (n - 1) * largest};
}

algorithm_cost cost_of_hierarchical_all_to_all(const plan_request& request) {
  return host_map{request}.has_one_level() ? cost_of_pairwise_all_to_all(request)
                                           : counted_cost(request, plan_hierarchical_all_to_all);
}

} // namespace ringmaster
