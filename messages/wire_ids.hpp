#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/ids.hpp"

#include <string>

namespace ringmaster {

// What is an integer on the wire, as the id that it is.

inline device_id id_of(const gpu_sim::DeviceMetadata& x) {
  return device_id{x.deviceid().value()};
}

inline communicator_id id_of(const gpu_sim::CommInitResponse& x) {
  return communicator_id{x.commid()};
}

/// A device's name for people: "device 0x4", and where it is, if that is known: "device 0x4, node-2 on hostb, pid
/// 812".
std::string text_of(const gpu_sim::DeviceMetadata& x);

/// A node's name for people: "node-2 on hostb, pid 812".
std::string place_text(const std::string& name, const std::string& hostname, uint64_t pid);
/// The same of any message that says so.
template <class Node>
std::string place_text(const Node& x) {
  return place_text(x.name(), x.hostname(), x.pid());
}

} // namespace ringmaster
