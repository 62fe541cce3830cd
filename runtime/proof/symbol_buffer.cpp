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

} // namespace ringmaster
