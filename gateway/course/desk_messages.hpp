#pragma once

#include "gateway/course/course_call.hpp"
#include "messages/type_ids.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/type_id.hpp>

#include <cstdint>
#include <vector>

namespace ringmaster::gateway {

/// The ports that a listener's devices have got, in the order of its list.
struct device_ports {
  std::vector<uint16_t> ports;
};

} // namespace ringmaster::gateway

// They stay in this process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(ringmaster::gateway::call_pointer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(ringmaster::gateway::device_ports)
CAF_BEGIN_TYPE_ID_BLOCK(ringmaster_gateway, caf::id_block::ringmaster::end + 1000)
CAF_ADD_TYPE_ID(ringmaster_gateway, (ringmaster::gateway::call_pointer))
CAF_ADD_TYPE_ID(ringmaster_gateway, (ringmaster::gateway::device_ports))
CAF_END_TYPE_ID_BLOCK(ringmaster_gateway)
