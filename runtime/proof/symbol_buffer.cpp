#include "runtime/proof/symbol_buffer.hpp"

#include <algorithm>
#include <cstddef>

namespace ringmaster {

size_t symbol_buffer::find(uint64_t offset) const {
  auto after = std::upper_bound(runs_.begin(), runs_.end(), offset,
                                [](uint64_t position, const symbol_run& x) { return position < x.start; });
  return static_cast<size_t>(after - runs_.begin()) - 1;
}

void symbol_buffer::read(uint64_t offset, uint64_t count, std::vector<symbol_run>& result) const {
  for (auto i = find(offset); i < runs_.size() && runs_[i].start < offset + count; ++i) {
    auto run = runs_[i];
    run.start = std::max(run.start, offset) - offset;
    run.shift += offset;
    result.push_back(run);
  }
}

void symbol_buffer::write(uint64_t offset, uint64_t count, const std::vector<symbol_run>& from) {
  auto end = offset + count;
  auto first = find(offset);
  auto last = first; // the runs [first, last) give way
  put_.clear();
  auto put = [&](const symbol_run& x) {
    if (put_.empty() || !put_.back().same_symbols(x))
      put_.push_back(x);
  };
  if (runs_[first].start < offset)
    put(runs_[first]);
  else if (first != 0)
    put(runs_[--first]); // it may go on in what is written
  for (auto run : from) {
    run.start += offset;
    run.shift -= offset;
    put(run);
  }
  while (last < runs_.size() && runs_[last].start < end)
    ++last;
  if (end < count_) {
    auto rest = runs_[last - 1];
    if (last < runs_.size() && runs_[last].start == end)
      rest = runs_[last++];
    rest.start = end;
    put(rest);
  }
  auto kept = std::min(put_.size(), last - first);
  std::copy_n(put_.begin(), kept, runs_.begin() + static_cast<ptrdiff_t>(first));
  auto at = runs_.begin() + static_cast<ptrdiff_t>(first + kept);
  if (kept < put_.size())
    runs_.insert(at, put_.begin() + static_cast<ptrdiff_t>(kept), put_.end());
  else
    runs_.erase(at, runs_.begin() + static_cast<ptrdiff_t>(last));
}

expected_outcome::expected_outcome(proto::CollectiveKind kind, const plan_request& request, rank_sets& sets)
  : kind_(kind), request_(request), sets_(sets) {
  if (kind == proto::ALL_TO_ALL)
    for (uint32_t rank = 0; rank < request.world_size; ++rank)
      cuts_.push_back(blocks::of(kind, request, rank));
}

/// `count` elements from `start` on are those of rank `from` from `index` on.
void expected_outcome::add(uint64_t start, uint64_t count, uint32_t from, uint64_t index) {
  if (count != 0)
    runs_.push_back({start, index - start, sets_.range(from, from + 1), false});
}

const std::vector<symbol_run>& expected_outcome::of(uint32_t rank) {
  runs_.clear();
  auto count = output_count(kind_, request_, rank);
  if (count == 0)
    return runs_;
  if (reduces(kind_)) {
    auto first = kind_ == proto::REDUCE_SCATTER ? blocks::of(kind_, request_, rank).start(rank) : 0;
    runs_.push_back({0, first, sets_.range(0, request_.world_size), true});
  } else if (kind_ == proto::ALL_GATHER || kind_ == proto::GATHER) {
    auto cut = blocks::of(kind_, request_, rank);
    for (uint32_t from = 0; from < cut.size(); ++from)
      add(cut.start(from), cut.count(from), from, 0);
  } else if (kind_ == proto::ALL_TO_ALL) {
    uint64_t start = 0;
    for (uint32_t from = 0; from < cuts_.size(); ++from) {
      add(start, cuts_[from].count(rank), from, cuts_[from].start(rank));
      start += cuts_[from].count(rank);
    }
  } else { // one rank's, whole or a block of it
    add(0, count, request_.root, kind_ == proto::SCATTER ? blocks::of(kind_, request_, rank).start(rank) : 0);
  }
  return runs_;
}

} // namespace ringmaster
