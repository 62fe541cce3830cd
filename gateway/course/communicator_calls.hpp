#pragma once

#include "gateway/course/course_desk.hpp"

#include <functional>
#include <vector>

namespace ringmaster::gateway {

// The calls of GPUCoordinator that concern communicators.

void comm_init(course_desk_state& desk, const call_pointer& call);
void get_comm_status(course_desk_state& desk, const call_pointer& call);
void group_start(course_desk_state& desk, const call_pointer& call);
void group_end(course_desk_state& desk, const call_pointer& call);
void comm_destroy(course_desk_state& desk, const call_pointer& call);
/// Waits for the operations in flight, then destroys. A CommDestroy may follow.
void comm_finalize(course_desk_state& desk, const call_pointer& call);
void comm_remove_device(course_desk_state& desk, const call_pointer& call);
void heartbeat(course_desk_state& desk, const call_pointer& call);

/// Makes a communicator of these devices, and hands it to `then`. Its id for clients is that of the cluster.
void init_on(course_desk_state& desk, const call_pointer& call, const std::vector<device_id>& devices,
             std::function<void(const gpu_sim::CommInitResponse&)> then);

} // namespace ringmaster::gateway
