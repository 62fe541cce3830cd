#pragma once

#include "runtime/proof/rank_sets.hpp"
#include "runtime/schedule/collective.hpp"

#include <caf/expected.hpp>

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

} // namespace ringmaster
