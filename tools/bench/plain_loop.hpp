#pragma once

#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

// A collective of float sums as a plain loop that reads every input once and writes every output once. It shares the
// meaning of the collective with the runtime, and single copies, but nothing of how operations are run.

/// `count` floats that go the same way.
struct plain_transfer {
  std::vector<const float*> from; ///< One: it is copied; several: their sum is.
  std::vector<float*> to;
  uint64_t count = 0;
};

/// All that a collective does. `inputs` and `outputs` are by rank; in place they are the same, and what stays where it
/// is has no transfer.
std::vector<plain_transfer> transfers_of(proto::CollectiveKind kind, const plan_request& request,
                                         const std::vector<const float*>& inputs, const std::vector<float*>& outputs);

/// Part `part` of `parts` of each of them. `past_caches`: with non-temporal stores.
void run_part(const std::vector<plain_transfer>& work, uint32_t part, uint32_t parts, bool past_caches);

} // namespace ringmaster
