#pragma once

#include <course.pb.h>
#include "gateway/course/course_desk.hpp"

#include <functional>

namespace ringmaster::gateway {

// The calls of GPUDevice, except Memcpy. The device is the one at whose address the call arrives, or that of the
// metadata `device-id`; StreamSend and GetStreamStatus find it also by the stream of a receive.

void get_device_metadata(course_desk_state& desk, const call_pointer& call);
void begin_send(course_desk_state& desk, const call_pointer& call);
void begin_receive(course_desk_state& desk, const call_pointer& call);
/// One chunk of a StreamSend.
void take_chunk(course_desk_state& desk, const call_pointer& call);
void get_stream_status(course_desk_state& desk, const call_pointer& call);
/// Makes a communicator of the devices at these addresses, once for all of them.
void setup_communication(course_desk_state& desk, const call_pointer& call);
/// Forgets the device's posted receives.
void reset_gpu(course_desk_state& desk, const call_pointer& call);
void device_heartbeat(course_desk_state& desk, const call_pointer& call);

course::DeviceMetadata metadata_for_clients(const course_desk_state& desk, const cluster_memory& x);

/// Finds the device of a call, and hands it to `then`.
void with_called_device(course_desk_state& desk, const call_pointer& call, std::function<void(device_id)> then);

} // namespace ringmaster::gateway
