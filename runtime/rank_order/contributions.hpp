#pragma once

#include "runtime/proof/rank_sets.hpp"
#include "runtime/schedule/collective.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace ringmaster {

/// Elements of a step's block that follow each other, and what they are: a partial reduction of the same elements of
/// some ranks' inputs, or the reduction of all ranks.
struct contribution_run {
  uint64_t start = 0; ///< In the step's block.
  uint64_t count = 0;
  uint64_t element = 0; ///< Of the inputs: the first.
  rank_sets::id of = rank_sets::empty;
  bool whole = false; ///< Of all ranks.
};

/// Whose contributions are in what the schedules of all ranks move: what they do, walked once on symbols, so that each
/// rank knows of its own steps and its peers' what stands for what. It takes 16 bytes a step.
class contributions {
public:
  /// Errors: invalid_argument, for the first fault of the schedules.
  static caf::expected<contributions> of(proto::CollectiveKind kind, const plan_request& request,
                                         const std::vector<schedule>& ranks);

  /// What the step takes or sends, from its first element to its last; none where all of it is whole.
  std::span<const contribution_run> moved(uint32_t rank, size_t step) const;
  /// Where the step makes a whole of what was not.
  std::span<const contribution_run> completed(uint32_t rank, size_t step) const;
  std::span<const rank_sets::run> ranks_of(const contribution_run& x) const { return sets_.runs(x.of); }

  /// Where segments of the inputs' elements begin, sorted, and the end of the last. What is no whole comes and goes in
  /// whole segments.
  const std::vector<uint64_t>& cuts() const { return cuts_; }
  /// The segment that begins at `element`.
  size_t segment_at(uint64_t element) const;

private:
  friend class contribution_walk;

  struct place {
    uint64_t first = 0;
    uint32_t moved = 0;
    uint32_t completed = 0;
  };

  rank_sets sets_;
  std::vector<uint64_t> cuts_;
  std::vector<contribution_run> runs_;
  std::vector<std::vector<place>> places_; ///< By rank and step.
};

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
