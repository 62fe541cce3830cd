#pragma once

#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster {

// A collective of float sums as a plain loop that reads every input once and writes every output once. It shares with
// the runtime the meaning of collectives and the copying of blocks, and not how operations are run.

/// `count` floats with the same sources and destinations.
struct plain_transfer {
  std::vector<const float*> from; ///< A single one is copied, several are summed.
  std::vector<float*> to;
  uint64_t count = 0;
};

/// The transfers of a collective. `inputs` and `outputs` are by rank; in place they are the same, and a block that
/// stays in place has no transfer.
std::vector<plain_transfer> transfers_of(proto::CollectiveKind kind, const plan_request& request,
                                         const std::vector<const float*>& inputs, const std::vector<float*>& outputs);

/// Runs part `part` of `parts` of each transfer. `past_caches`: with non-temporal stores.
void run_part(const std::vector<plain_transfer>& work, uint32_t part, uint32_t parts, bool past_caches);

} // namespace ringmaster
