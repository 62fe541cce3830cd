#include "runtime/rank_order/contributions.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/schedule/schedule_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster {

/// Notes what the steps move while they are walked.
class contribution_walk : public walk_observer {
public:
  contribution_walk(symbol_walk& symbols, const std::vector<schedule>& ranks, contributions& result)
    : symbols_(symbols), ranks_(ranks), result_(result) {
    for (const auto& x : ranks)
      result.places_.emplace_back(x.steps.size());
  }

  caf::error moved(step_ref from, step_ref to) override {
    RETURN_ERROR(symbols_.moved(from, to));
    const auto& what = ranks_[to.rank].steps[to.index];
    const auto count = what.destination.count;
    contributions::place place{result_.runs_.size(), 0, 0};
    const auto folds = what.what == action::fold;
    if (folds || !is_whole(symbols_.taken())) {
      add(symbols_.taken(), count, [](bool) { return true; });
      place.moved = static_cast<uint32_t>(result_.runs_.size() - place.first);
      if (folds || &symbols_.taken() != &symbols_.written())
        add(symbols_.written(), count, [](bool whole) { return whole; });
      place.completed = static_cast<uint32_t>(result_.runs_.size() - place.first - place.moved);
    }
    result_.places_[from.rank][from.index] = {place.first, place.moved, 0};
    result_.places_[to.rank][to.index] = place;
    return {};
  }

  void end() {
    gather_cuts();
    result_.sets_ = std::move(symbols_.sets());
  }

private:
  bool is_whole(const symbol_run& x) const { return x.of == symbols_.everybody(); }
  bool is_whole(const std::vector<symbol_run>& runs) const {
    return std::all_of(runs.begin(), runs.end(), [&](auto& x) { return is_whole(x); });
  }

  template <class Wanted>
  void add(const std::vector<symbol_run>& runs, uint64_t count, Wanted wanted) {
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto& x = runs[i];
      const auto end = i + 1 < runs.size() ? runs[i + 1].start : count;
      if (!wanted(is_whole(x)))
        continue;
      result_.runs_.push_back({x.start, end - x.start, x.start + x.shift, x.of, is_whole(x)});
      cut(x.start + x.shift);
      cut(end + x.shift);
    }
  }

  void cut(uint64_t element) {
    result_.cuts_.push_back(element);
    if (result_.cuts_.size() > 2 * distinct_ + 4096)
      gather_cuts();
  }

  void gather_cuts() {
    auto& cuts = result_.cuts_;
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    distinct_ = cuts.size();
  }

  symbol_walk& symbols_;
  const std::vector<schedule>& ranks_;
  contributions& result_;
  size_t distinct_ = 0; ///< Cuts, when they were gathered last.
};

caf::expected<contributions> contributions::of(proto::CollectiveKind kind, const plan_request& request,
                                               const std::vector<schedule>& ranks) {
  const auto counts = buffer_counts_of(kind, request);
  contributions result;
  symbol_walk symbols{kind, request, ranks, counts};
  contribution_walk walk{symbols, ranks, result};
  auto walked = walk_schedules(ranks, counts, 1, walk);
  if (!walked.fault)
    walked.fault = symbols.check_outcome();
  if (walked.fault)
    return std::move(walked.fault);
  walk.end();
  return result;
}

std::span<const contribution_run> contributions::moved(uint32_t rank, size_t step) const {
  const auto& x = places_[rank][step];
  return std::span{runs_}.subspan(x.first, x.moved);
}

std::span<const contribution_run> contributions::completed(uint32_t rank, size_t step) const {
  const auto& x = places_[rank][step];
  return std::span{runs_}.subspan(x.first + x.moved, x.completed);
}

size_t contributions::segment_at(uint64_t element) const {
  return static_cast<size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), element) - cuts_.begin());
}

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
