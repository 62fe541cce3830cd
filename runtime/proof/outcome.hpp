#pragma once

#include "runtime/proof/symbol_buffer.hpp"
#include "runtime/schedule/collective.hpp"

#include <vector>

namespace ringmaster {

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
