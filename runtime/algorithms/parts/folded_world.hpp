#pragma once

#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ringmaster {

/// N ranks folded onto the largest power of two P <= N, for algorithms that want one. Of the first 2(N-P) ranks each
/// odd one, an extra, hands its part to the rank before it and waits for the result; the others are the survivors,
/// numbered 0..P-1. Ranks are counted from `root`, which is survivor 0 and, where there are extras, has one.
class folded_world {
public:
  explicit folded_world(uint32_t world_size, uint32_t root = 0) : world_size_(world_size), root_(root) {
    while (uint64_t{2} << levels_ <= world_size)
      ++levels_;
  }

  uint32_t size() const noexcept { return 1u << levels_; } ///< P, the survivors.
  uint32_t levels() const noexcept { return levels_; }     ///< log2 P
  uint32_t extras() const noexcept { return world_size_ - size(); }
  /// Rounds before the survivors start.
  uint32_t fold_rounds() const noexcept { return extras() != 0 ? 1 : 0; }

  bool has_extra(uint32_t survivor) const noexcept { return survivor < extras(); }
  bool is_extra(uint32_t rank) const noexcept { return from_root(rank) < 2 * extras() && from_root(rank) % 2 == 1; }
  /// Itself, or whom it folds onto.
  uint32_t survivor_of(uint32_t rank) const noexcept {
    const auto place = from_root(rank);
    return place < 2 * extras() ? place / 2 : place - extras();
  }
  uint32_t rank_of(uint32_t survivor) const noexcept { return (first(survivor) + root_) % world_size_; }
  uint32_t extra_of(uint32_t survivor) const noexcept { return (first(survivor) + 1 + root_) % world_size_; }

  /// Ranks, counted from the root, that the survivors before this one stand for.
  uint32_t first(uint32_t survivor) const noexcept { return std::min(2 * survivor, survivor + extras()); }

  /// One block for each survivor: its own and its extra's, which follow each other. `cut` has one for each rank.
  blocks merge(const blocks& cut) const {
    std::vector<uint64_t> counts;
    counts.reserve(size());
    for (uint32_t survivor = 0; survivor < size(); ++survivor)
      counts.push_back(cut.start(first(survivor + 1)) - cut.start(first(survivor)));
    return blocks::of(counts);
  }

private:
  uint32_t from_root(uint32_t rank) const noexcept { return (rank + world_size_ - root_) % world_size_; }

  uint32_t world_size_;
  uint32_t root_;
  uint32_t levels_ = 0;
};

} // namespace ringmaster
