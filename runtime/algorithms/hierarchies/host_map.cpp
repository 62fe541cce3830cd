#include "runtime/algorithms/hierarchies/host_map.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

host_map::host_map(const plan_request& request) : host_of_(request.hosts), place_of_(request.world_size) {
  host_of_.resize(request.world_size);                           // none given: all on one
  std::vector<uint32_t> numbers(request.world_size, UINT32_MAX); // numbers may be left out
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto& number = numbers[host_of_[rank]];
    if (number == UINT32_MAX) {
      number = size();
      ranks_.emplace_back();
    }
    host_of_[rank] = number;
    place_of_[rank] = static_cast<uint32_t>(ranks_[number].size());
    ranks_[number].push_back(rank);
    largest_ = std::max(largest_, place_of_[rank] + 1);
  }
}

uint32_t host_map::partner_of(uint32_t rank, uint32_t host) const {
  return host == host_of(rank) ? rank : ranks_[host][place_of(rank) % ranks_[host].size()];
}

std::vector<uint32_t> host_map::partners(uint32_t rank, uint32_t host) const {
  std::vector<uint32_t> result;
  if (host != host_of(rank))
    for (auto place = place_of(rank); place < ranks_[host].size(); place += company(rank))
      result.push_back(ranks_[host][place]);
  return result;
}

std::vector<uint32_t> host_map::partners(uint32_t rank) const {
  std::vector<uint32_t> result;
  for (uint32_t host = 0; host < size(); ++host)
    for (auto x : partners(rank, host))
      result.push_back(x);
  return result;
}

host_shards::host_shards(const host_map& hosts, uint64_t count) : hosts_(hosts), count_(count) {
  std::set<uint32_t> sizes;
  for (uint32_t host = 0; host < hosts.size(); ++host)
    sizes.insert(static_cast<uint32_t>(hosts.ranks(host).size()));
  for (auto size : sizes)
    for (uint32_t i = 0; i < size; ++i)
      bounds_.push_back(block_of(buffer::input, count, size, i).offset);
  bounds_.push_back(count);
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
}

block_range host_shards::of(buffer where, uint32_t rank) const {
  return block_of(where, count_, hosts_.company(rank), hosts_.place_of(rank));
}

std::vector<block_range> host_shards::pieces(buffer where, uint32_t rank) const {
  const auto shard = of(where, rank);
  std::vector<block_range> result;
  auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), shard.offset);
  for (auto start = shard.offset; start < shard.offset + shard.count; start = *bound)
    result.push_back({where, start, *++bound - start});
  return result;
}

uint64_t host_shards::largest_piece() const {
  uint64_t largest = 0;
  for (size_t i = 1; i < bounds_.size(); ++i)
    largest = std::max(largest, bounds_[i] - bounds_[i - 1]);
  return largest;
}

uint32_t host_shards::owner(const block_range& piece, uint32_t host) const {
  const auto& ranks = hosts_.ranks(host);
  const auto least = count_ / ranks.size(), larger = count_ % ranks.size(); // this count of shards has one element more
  const auto before = (least + 1) * larger;
  const auto place = piece.offset < before ? piece.offset / (least + 1) : larger + (piece.offset - before) / least;
  return ranks[place];
}

namespace {

/// Elements of a round, by sender and receiver.
using round_traffic = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;

uint64_t serial_elements_of(const round_traffic& traffic, uint32_t world_size) {
  std::vector<uint64_t> out(world_size), in(world_size);
  for (const auto& [ends, elements] : traffic) {
    out[ends.first] += elements;
    in[ends.second] += elements;
  }
  uint64_t longest = 0;
  for (const auto& [ends, elements] : traffic)
    longest = std::max(longest, out[ends.first] + in[ends.second] - elements);
  return longest;
}

} // namespace

algorithm_cost counted_cost(const plan_request& request, schedule (*plan)(const plan_request&)) {
  algorithm_cost cost;
  std::vector<round_traffic> rounds;
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto of_rank = request;
    of_rank.rank = rank;
    const auto planned = plan(of_rank);
    rounds.resize(std::max<size_t>(rounds.size(), planned.rounds));
    uint64_t elements = 0, sent = 0, received = 0;
    for (const auto& x : planned.steps) {
      if (x.what == action::send) {
        rounds[x.round][{rank, x.peer}] += x.source.count;
        elements += x.source.count;
        ++sent;
      } else if (x.what == action::recv || x.what == action::recv_reduce) {
        ++received;
      }
    }
    cost.elements = std::max(cost.elements, elements);
    cost.messages = std::max({cost.messages, sent, received});
  }
  cost.rounds = rounds.size();
  for (const auto& traffic : rounds) {
    cost.latencies += traffic.empty() ? 0 : 1;
    cost.serial_elements += serial_elements_of(traffic, request.world_size);
  }
  return cost;
}

} // namespace ringmaster
