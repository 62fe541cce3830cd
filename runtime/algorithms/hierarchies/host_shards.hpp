#pragma once

#include "runtime/algorithms/hierarchies/host_map.hpp"
#include "runtime/schedule/collective.hpp"

#include <vector>

namespace ringmaster {

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

} // namespace ringmaster
