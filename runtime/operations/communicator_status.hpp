#pragma once

#include "messages/status.pb.h"
#include "runtime/health/watch.hpp"
#include "runtime/operations/call_desk.hpp"
#include "runtime/operations/epoch_change.hpp"

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

} // namespace ringmaster
