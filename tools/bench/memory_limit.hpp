#pragma once

#include "runtime/schedule/collective.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>

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

/// The hardware's limit if all ranks share one memory: the plain loop of tools/bench/plain_loop.hpp, spinning on all
/// cores. It is measured in files like the devices' and in anonymous huge pages, with cached and with non-temporal
/// stores. The lowest median of `samples` samples counts; a sample has `operations` operations, or the number that fits
/// into 100 ms. Errors: io_error if there is no memory of either kind.
caf::expected<memory_limit> measure_memory_limit(const limited_collective& x, uint32_t samples, uint32_t operations);

} // namespace ringmaster
