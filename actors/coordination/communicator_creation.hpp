#pragma once

#include "actors/coordination/coordinator.hpp"

namespace ringmaster {

// How the COORDINATOR makes communicators: of free devices, and of another communicator's devices.

/// Whether blocks can get to all of these devices by the configured route. Errors: unreachable, naming the first device
/// that is out of reach.
caf::error check_reach(const coordinator_state& state, const device_ids& ranks);
/// Whether the memory of all of these devices can be mapped here. Errors: the same.
caf::error check_memory_reach(const coordinator_state& state, const device_ids& ranks);
/// Ranks 0..n-1 on these devices, which have been checked.
gpu_sim::CommInitResponse make_communicator(coordinator_state& state, const device_ids& ranks, known_communicator like);
/// The answer of the call that has made it, for one that is sent again.
gpu_sim::CommInitResponse made_before(const proto::StoredCommunicator& stored);
/// Communicators of another one's devices.
caf::result<proto::CommDeriveResponse> derive(coordinator_state& state, const proto::CommDeriveRequest& x);

} // namespace ringmaster
