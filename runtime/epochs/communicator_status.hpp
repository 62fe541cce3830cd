#pragma once

#include "messages/status.pb.h"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/health/watch.hpp"
#include "runtime/operations/call_desk.hpp"

#include <functional>
#include <string>

namespace ringmaster {

/// Those who know what a communicator is doing.
struct communicator_view {
  const epoch_change& epochs;
  const watch& watched;
  const call_desk& calls;
  /// Whether a device has come to a joint operation.
  std::function<bool(device_id, sequence_number)> has_come;
  watch::time_point now;
  uint64_t unix_ns = 0; ///< Now, on the wall.
};

/// What a rank does, in words: by what it has said of `op`, the first that is in flight, and by what is known better.
/// `op` is null where nothing is in flight.
std::string doing_of(const communicator_view& x, const rank_device& rank, const operation* op);

/// What is said of operations, ranks and calls. Of many operations and calls only the first: the numbers say how many
/// there are.
proto::CommunicatorStatus status_of(const communicator_view& x);

/// device_lost, if a rank does not hold its result of the latest operations although they have ended.
caf::error missing_results(const epoch_change& epochs);

/// "2 operations in flight on communicator 7, epoch 3; first is #17: rank 0 (...) finished, rank 1 (...) ..."
std::string explain(const communicator_view& x, communicator_id communicator);

} // namespace ringmaster
