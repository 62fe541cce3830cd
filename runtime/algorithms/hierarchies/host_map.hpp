#pragma once

#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// Which ranks lie on which host, of any layout: hosts may have different numbers of ranks, and a host's ranks need not
/// follow each other. A rank's place is its number among those of its host.
///
/// Every rank has a partner on each host, who deals there with what comes from it or is for it: the rank at its own
/// place or, on a host with fewer ranks, at its place counted around. So the ranks of a host share what goes to the
/// others evenly.
class host_map {
public:
  explicit host_map(const plan_request& request);

  uint32_t size() const noexcept { return static_cast<uint32_t>(ranks_.size()); } ///< Hosts.
  uint32_t largest() const noexcept { return largest_; }                          ///< Ranks of the host with most.
  /// All ranks are on one host, or each is on a host of its own.
  bool has_one_level() const noexcept { return size() == 1 || largest_ == 1; }

  uint32_t host_of(uint32_t rank) const { return host_of_[rank]; }
  uint32_t place_of(uint32_t rank) const { return place_of_[rank]; }
  const std::vector<uint32_t>& ranks(uint32_t host) const { return ranks_[host]; } ///< From the lowest.
  /// Ranks of a rank's host, itself among them.
  uint32_t company(uint32_t rank) const { return static_cast<uint32_t>(ranks_[host_of_[rank]].size()); }

  uint32_t after(uint32_t host, uint32_t steps) const { return (host + steps) % size(); }
  uint32_t before(uint32_t host, uint32_t steps) const { return (host + size() - steps % size()) % size(); }

  uint32_t partner_of(uint32_t rank, uint32_t host) const;
  /// Ranks of other hosts whose partner `rank` is, on its own; those of `host` alone.
  std::vector<uint32_t> partners(uint32_t rank) const;
  std::vector<uint32_t> partners(uint32_t rank, uint32_t host) const;

  uint32_t rounds_across() const noexcept { return size() - 1; }
  uint32_t rounds_within() const noexcept { return largest_ - 1; }
  /// Calls f(round, to, from): in each of `rounds_within` rounds the ranks of a host meet in pairs, until each has met
  /// all others. Those of a smaller host are through sooner.
  template <class F>
  void for_each_meeting(uint32_t rank, F&& f) const {
    const auto& all = ranks(host_of(rank));
    const auto s = company(rank), place = place_of(rank);
    for (uint32_t t = 1; t < s; ++t)
      f(t - 1, all[(place + t) % s], all[(place + s - t) % s]);
  }

private:
  std::vector<std::vector<uint32_t>> ranks_; ///< By host.
  std::vector<uint32_t> host_of_, place_of_; ///< By rank.
  uint32_t largest_ = 0;
};

/// A run of elements that every host gives to the ranks on it in equal parts: each rank has a shard. Where hosts have
/// different numbers of ranks their shards have other bounds; between two bounds of any host lies a piece, which has
/// one owner on each host. Across hosts, the owners of a piece deal with it among themselves.
class host_shards {
public:
  host_shards(const host_map& hosts, uint64_t count);

  block_range of(buffer where, uint32_t rank) const;
  /// Those of the rank's shard, from the first on; none is empty.
  std::vector<block_range> pieces(buffer where, uint32_t rank) const;
  uint32_t owner(const block_range& piece, uint32_t host) const;
  uint64_t largest_piece() const;

private:
  const host_map& hosts_;
  uint64_t count_;
  std::vector<uint64_t> bounds_; ///< Of all hosts' shards, sorted, the end among them.
};

/// What the schedules of all ranks take, by counting their messages: for algorithms whose cost has no short formula.
/// Of a round in which ranks have several peers, a message has ended when all that was before it in its two ports has
/// gone through, so the largest such sum over the messages is a bound of the round's.
algorithm_cost counted_cost(const plan_request& request, schedule (*plan)(const plan_request&));

} // namespace ringmaster
