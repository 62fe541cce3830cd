#pragma once

#include "gateway/course/course_desk.hpp"

namespace ringmaster::gateway {

/// Memcpy, of GPUCoordinator and of GPUDevice. A device's own address stands for its id.
void copy(course_desk_state& desk, const call_pointer& call);

} // namespace ringmaster::gateway
