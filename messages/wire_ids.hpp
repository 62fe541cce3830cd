#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/ids.hpp"

namespace ringmaster {

// What is an integer on the wire, as the id that it is.

inline device_id id_of(const gpu_sim::DeviceMetadata& x) {
  return device_id{x.deviceid().value()};
}

inline communicator_id id_of(const gpu_sim::CommInitResponse& x) {
  return communicator_id{x.commid()};
}

} // namespace ringmaster
