#pragma once

#include "messages/cluster.pb.h"
#include "messages/ids.hpp"

#include <caf/expected.hpp>

#include <string>

namespace ringmaster {

/// "0x4" or "4". Errors: invalid_argument.
caf::expected<device_id> parse_device(const std::string& text);

/// Describes a device: "device 0x4 (node-2 on hostb, pid 812), rank 3 of communicator 7". Errors: unknown_device, with
/// the known devices or the cause of its loss.
caf::expected<std::string> device_words(const proto::ClusterInfo& cluster, device_id device);

} // namespace ringmaster
