#pragma once

#include "messages/status.pb.h"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/health/slow_devices.hpp"
#include "runtime/health/watch.hpp"
#include "runtime/operations/call_desk.hpp"

#include <functional>
#include <string>

namespace ringmaster {

/// The objects that know what a communicator is doing.
struct communicator_view {
  const epoch_change& epochs;
  const watch& watched;
  const slow_devices& slow;
  const call_desk& calls;
  /// Whether a device has come to a shared-memory operation.
  std::function<bool(device_id, sequence_number)> has_come;
  watch::time_point now;
  uint64_t unix_ns = 0; ///< Now, on the wall.
};

/// What a rank does, in words: from its latest answer about `op`, the first operation in flight, and from what the
/// communicator knows itself. `op` is null if nothing is in flight.
std::string doing_of(const communicator_view& x, const rank_device& rank, const operation* op);

/// The status of operations, ranks and calls. Of many operations and calls it has only the first, and their number.
proto::CommunicatorStatus status_of(const communicator_view& x);

/// device_lost, if a rank does not hold its result of the latest operations although they have ended.
caf::error missing_results(const epoch_change& epochs);

/// "2 operations in flight on communicator 7, epoch 3; first is #17: rank 0 (...) finished, rank 1 (...) ..."
std::string explain(const communicator_view& x, communicator_id communicator);

} // namespace ringmaster
