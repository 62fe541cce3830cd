#pragma once

#include "runtime/rank_order/contributions.hpp"

#include <caf/error.hpp>

#include <algorithm>

namespace ringmaster {

/// Where a rank keeps the contributions that it gets: in scratch, segment by segment of the inputs' elements, in the
/// order of the ranks they come from. So those of ranks that follow each other are one block.
class contribution_lanes {
public:
  contribution_lanes(const contributions& all, uint32_t rank);

  /// The rank's steps, before `lay_out`.
  void expect(size_t index, const step& x);
  /// Gives each its place, from element `first` of the scratch on. Errors: invalid_argument, for a contribution that
  /// the rank gets twice.
  caf::error lay_out(uint64_t first);

  /// Where the next element of the scratch is free.
  uint64_t end() const { return end_; }
  /// Elements of the segment.
  uint64_t size(size_t segment) const { return all_.cuts()[segment + 1] - all_.cuts()[segment]; }
  /// The contributions of these ranks, which the rank gets.
  block_range at(size_t segment, rank_sets::run ranks) const;

  template <class F>
  void for_each_segment(const contribution_run& run, F&& f) const {
    const auto end = all_.segment_at(run.element + run.count);
    for (auto i = all_.segment_at(run.element); i < end; ++i)
      f(i);
  }

private:
  struct segment_lanes {
    std::vector<rank_sets::run> held; ///< Once laid out: sorted, none next to another.
    uint64_t start = 0;
    bool folded = false; ///< Once all are there, the rank's own one among them.
  };

  const contributions& all_;
  uint32_t rank_;
  std::vector<segment_lanes> segments_;
  uint64_t end_ = 0;
};

/// Calls f(run) for the parts of `ranks` that travel as one block: the sender's own contribution lies in its input,
/// apart from the others, and the receiver has its own one.
template <class F>
void for_each_part(rank_sets::run ranks, uint32_t sender, uint32_t receiver, F&& f) {
  for (auto first = ranks.first, last = first; first < ranks.last; first = last) {
    last = first == sender || first == receiver ? first + 1 : ranks.last;
    for (auto end : {sender, receiver})
      if (first < end)
        last = std::min(last, end);
    if (first != receiver)
      f(rank_sets::run{first, last});
  }
}

} // namespace ringmaster
