#include "runtime/algorithms/hierarchies/host_shards.hpp"

#include <algorithm>
#include <set>

namespace ringmaster {

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

} // namespace ringmaster
