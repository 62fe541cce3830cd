#pragma once

#include "runtime/proof/rank_sets.hpp"
#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

/// Elements of a buffer that follow each other and hold the same thing: the element at position p is the combination of
/// input[p + shift] of every rank in `of`. Positions and shifts count modulo 2^64.
struct symbol_run {
  uint64_t start = 0; ///< Up to the start of the next run.
  uint64_t shift = 0;
  rank_sets::id of = rank_sets::empty; ///< Empty: never written.
  bool finished = false;

  bool same_symbols(const symbol_run& other) const {
    return of == other.of && shift == other.shift && finished == other.finished;
  }
};

/// What the elements of a buffer hold, as runs: neighbours with the same symbols are one. Its size in memory depends on
/// the blocks that are told apart, not on the elements.
class symbol_buffer {
public:
  explicit symbol_buffer(uint64_t count, symbol_run all = {}) : count_(count), runs_{all} {}

  /// The runs of `count` > 0 elements from `offset`, positions counted from `offset`; appended to `result`.
  void read(uint64_t offset, uint64_t count, std::vector<symbol_run>& result) const;
  /// The reverse.
  void write(uint64_t offset, uint64_t count, const std::vector<symbol_run>& from);

  uint64_t count() const noexcept { return count_; }

private:
  /// The run that holds position `offset`.
  size_t find(uint64_t offset) const;

  uint64_t count_;
  std::vector<symbol_run> runs_; ///< Sorted; the first starts at 0.
  std::vector<symbol_run> put_;  ///< What `write` puts in the place of what was there.
};

/// What the outputs of a collective must hold, as runs of elements: `meaning_of` for whole buffers at once.
class expected_outcome {
public:
  expected_outcome(proto::CollectiveKind kind, const plan_request& request, rank_sets& sets);

  /// The runs of the rank's output, in order, none without elements. Valid until the next call.
  const std::vector<symbol_run>& of(uint32_t rank);

private:
  void add(uint64_t start, uint64_t count, uint32_t from, uint64_t index);

  proto::CollectiveKind kind_;
  const plan_request& request_;
  rank_sets& sets_;
  std::vector<blocks> cuts_; ///< ALL_TO_ALL: by rank, of its input.
  std::vector<symbol_run> runs_;
};

} // namespace ringmaster
