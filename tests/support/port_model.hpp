#pragma once

#include "runtime/schedule/collective.hpp"

#include <cstdint>
#include <vector>

namespace ringmaster::test {

/// When the last rank ends, by the uniform network of `algorithm_cost`: a rank has one port out and one in; a message
/// keeps the sender's port out and the receiver's port in busy for `per_element` x its elements, from when both steps
/// have begun and both ports are free, and both steps end a `latency` after that. Local steps take no time. Of several
/// messages that wait, the one that can start first does. The schedules have no fault.
uint64_t port_model_time(const std::vector<schedule>& ranks, uint64_t latency, uint64_t per_element);

} // namespace ringmaster::test
