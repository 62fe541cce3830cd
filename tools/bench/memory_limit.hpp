#pragma once

#include "runtime/schedule/collective.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>

namespace ringmaster {

/// What is to be done: on float32, whatever else was measured.
struct limited_collective {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  plan_request request;
  bool in_place = false;
};

struct memory_limit {
  double time_us = 0; ///< An operation.
  std::string how;    ///< What was best here: "huge pages, past the caches".
};

/// What the hardware allows where all ranks lie in one memory: the plain loop of tools/bench/plain_loop.hpp on as many
/// spinning threads as there are cores, in the best of several ways: in files as the devices have them or in anonymous
/// huge pages, with stores into the caches or past them. Of each way it takes `samples` samples of `operations`
/// operations back to back, or of those of 100 ms; the way whose median is lowest counts.
/// Errors: io_error, where there is no memory of either kind.
caf::expected<memory_limit> measure_memory_limit(const limited_collective& x, uint32_t samples, uint32_t operations);

} // namespace ringmaster
