#pragma once

#include "runtime/schedule/collective.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

/// The collective, always on float32.
struct limited_collective {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  plan_request request;
  bool in_place = false;
};

struct memory_limit {
  double time_us = 0; ///< An operation.
  std::string how;    ///< The fastest way: "huge pages, past the caches".
};

/// The hardware's limit if all ranks share one memory: the plain loop of tools/bench/memory_limit.hpp, spinning on all
/// cores. It is measured in files like the devices' and in anonymous huge pages, with cached and with non-temporal
/// stores. The lowest median of `samples` samples counts; a sample has `operations` operations, or the number that fits
/// into 100 ms. Errors: io_error if there is no memory of either kind.
caf::expected<memory_limit> measure_memory_limit(const limited_collective& x, uint32_t samples, uint32_t operations);

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
