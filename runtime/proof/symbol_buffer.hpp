#pragma once

#include "runtime/proof/rank_sets.hpp"

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

} // namespace ringmaster
