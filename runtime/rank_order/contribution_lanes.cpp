#include "runtime/rank_order/contribution_lanes.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <fmt/format.h>

namespace ringmaster {

contribution_lanes::contribution_lanes(const contributions& all, uint32_t rank)
  : all_(all), rank_(rank), segments_(all.cuts().size()) {}

void contribution_lanes::expect(size_t index, const step& x) {
  if (receives(x))
    for (const auto& run : all_.moved(rank_, index))
      for_each_segment(run, [&](size_t i) {
        if (!run.whole)
          for (auto ranks : all_.ranks_of(run))
            for_each_part(ranks, x.peer, rank_, [&](rank_sets::run part) { segments_[i].held.push_back(part); });
      });
  for (const auto& run : all_.completed(rank_, index))
    for_each_segment(run, [&](size_t i) { segments_[i].folded = true; });
}

caf::error contribution_lanes::lay_out(uint64_t first) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    auto& x = segments_[i];
    if (x.folded)
      x.held.push_back({rank_, rank_ + 1});
    std::sort(x.held.begin(), x.held.end(), [](auto a, auto b) { return a.first < b.first; });
    x.start = first;
    std::vector<rank_sets::run> joined;
    for (auto run : x.held) {
      if (!joined.empty() && run.first < joined.back().last)
        return invalid(
          fmt::format("rank {} gets rank {}'s contribution to element {} twice, so it is not known which to add", rank_,
                      run.first, all_.cuts()[i]));
      if (joined.empty() || run.first != joined.back().last)
        joined.push_back(run);
      joined.back().last = run.last;
      first += (run.last - run.first) * size(i);
    }
    x.held = std::move(joined);
  }
  end_ = first;
  return {};
}

block_range contribution_lanes::at(size_t segment, rank_sets::run ranks) const {
  const auto& x = segments_[segment];
  const auto each = size(segment);
  auto offset = x.start;
  auto held = x.held.begin();
  for (; held->last <= ranks.first; ++held)
    offset += (held->last - held->first) * each;
  return {buffer::scratch, offset + (ranks.first - held->first) * each, (ranks.last - ranks.first) * each};
}

} // namespace ringmaster
