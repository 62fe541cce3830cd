#include "runtime/proof/rank_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace ringmaster {

namespace {

/// Runs of a pair together from which on finding the pair is cheaper than uniting it again.
constexpr uint32_t memo_runs = 16;

} // namespace

rank_sets::rank_sets() : table_(64, none) {
  interned(); // the empty set gets id 0
}

rank_sets::id rank_sets::range(uint32_t first, uint32_t last) {
  built_.clear();
  if (first < last)
    built_.push_back({first, last});
  return interned();
}

rank_sets::united rank_sets::unite(id a, id b) {
  auto long_pair = places_[a].size + places_[b].size > memo_runs;
  auto key = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  if (long_pair)
    if (auto known = memo_.find(key); known != memo_.end())
      return known->second;
  united result;
  built_.clear();
  const auto *x = begin(a), *y = begin(b);
  while (x != end(a) || y != end(b)) {
    if (x != end(a) && y != end(b) && x->first < y->last && y->first < x->last)
      result.common = std::min(result.common, std::max(x->first, y->first));
    if (y == end(b) || (x != end(a) && x->first <= y->first))
      append(*x++);
    else
      append(*y++);
  }
  result.both = interned();
  if (long_pair)
    memo_.emplace(key, result);
  return result;
}

void rank_sets::append(run next) {
  if (!built_.empty() && next.first <= built_.back().last)
    built_.back().last = std::max(built_.back().last, next.last);
  else
    built_.push_back(next);
}

rank_sets::id rank_sets::interned() {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (auto x : built_) {
    hash = (hash ^ (uint64_t{x.first} << 32 | x.last)) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  auto mask = table_.size() - 1;
  auto slot = static_cast<uint32_t>(hash) & mask;
  for (; table_[slot] != none; slot = (slot + 1) & mask) {
    auto known = table_[slot];
    if (places_[known].hash == static_cast<uint32_t>(hash)
        && std::equal(begin(known), end(known), built_.begin(), built_.end()))
      return known;
  }
  auto result = static_cast<id>(places_.size());
  table_[slot] = result;
  places_.push_back({runs_.size(), static_cast<uint32_t>(built_.size()), static_cast<uint32_t>(hash)});
  runs_.insert(runs_.end(), built_.begin(), built_.end());
  if (2 * places_.size() > table_.size())
    grow_table();
  return result;
}

void rank_sets::grow_table() {
  table_.assign(4 * table_.size(), none);
  auto mask = table_.size() - 1;
  for (id set = 0; set < places_.size(); ++set) {
    auto slot = places_[set].hash & mask;
    while (table_[slot] != none)
      slot = (slot + 1) & mask;
    table_[slot] = set;
  }
}

bool rank_sets::contains(id set, uint32_t rank) const {
  return std::any_of(begin(set), end(set), [&](const run& x) { return x.first <= rank && rank < x.last; });
}

uint32_t rank_sets::size(id set) const {
  return std::accumulate(begin(set), end(set), 0u, [](auto sum, const run& x) { return sum + x.last - x.first; });
}

std::string rank_sets::text(id set) const {
  if (set == empty)
    return "no rank";
  std::string result;
  for (const auto* x = begin(set); x != end(set); ++x)
    result += fmt::format("{}{}{}", result.empty() ? "" : ", ", x->first,
                          x->last - x->first == 1 ? "" : fmt::format(" to {}", x->last - 1));
  return (size(set) == 1 ? "rank " : "ranks ") + result;
}

} // namespace ringmaster
