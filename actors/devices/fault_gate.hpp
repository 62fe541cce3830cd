#pragma once

#include "messages/interfaces.hpp"

#include <caf/error.hpp>

namespace ringmaster {

class device_state;

/// The one way by which faults get into a device: checks a FaultRequest, and has the device's streams killed, hung or
/// slowed down. Nothing else of the device knows of faults.
class fault_gate {
public:
  explicit fault_gate(device_state& device) : device_(device) {}

  /// Errors: invalid_argument; unknown_stream.
  caf::error inject(const proto::FaultRequest& x);

private:
  device_state& device_;
};

} // namespace ringmaster
