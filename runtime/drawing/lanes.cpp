#include "runtime/drawing/lanes.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ringmaster {

namespace {

/// In half columns, so that local work is centred on its rank.
struct extent {
  uint32_t first = 0, last = 0;

  bool overlaps(const extent& other) const { return first < other.last && other.first < last; }
};

extent extent_of(const drawn_activity& x) {
  if (x.source == x.destination)
    return {2 * x.source, 2 * x.source + 2};
  return {2 * std::min(x.source, x.destination) + 1, 2 * std::max(x.source, x.destination) + 1};
}

} // namespace

lane_plan lanes_of(const drawn_round& round) {
  const auto& all = round.activities;
  std::vector<size_t> sorted(all.size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  auto key = [&](size_t i) {
    auto e = extent_of(all[i]);
    return std::tuple{all[i].order, e.last - e.first, e.first};
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](auto a, auto b) { return key(a) < key(b); });
  lane_plan plan;
  plan.lanes.resize(all.size());
  std::vector<std::vector<extent>> taken; // extents in the lanes of this order
  uint32_t base = 0, order = 0;
  for (auto i : sorted) {
    if (all[i].order != order) {
      base += static_cast<uint32_t>(taken.size());
      taken.clear();
      order = all[i].order;
      plan.chain_starts.push_back(base);
    }
    auto mine = extent_of(all[i]);
    auto free = std::find_if(taken.begin(), taken.end(), [&](auto& lane) {
      return std::none_of(lane.begin(), lane.end(), [&](auto& other) { return mine.overlaps(other); });
    });
    if (free == taken.end())
      free = taken.insert(taken.end(), std::vector<extent>{});
    free->push_back(mine);
    plan.lanes[i] = base + static_cast<uint32_t>(free - taken.begin());
  }
  plan.count = base + static_cast<uint32_t>(taken.size());
  ensure(std::ranges::all_of(plan.lanes, [&](auto lane) { return lane < plan.count; }), "each arrow has a lane");
  return plan;
}

} // namespace ringmaster
