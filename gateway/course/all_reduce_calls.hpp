#pragma once

#include "gateway/course/course_desk.hpp"

namespace ringmaster::gateway {

// Outside a group these answer when the operation has ended, within a group when it is noted.

void all_reduce_ring(course_desk_state& desk, const call_pointer& call);
/// All data go to rank 0 and back.
void all_reduce(course_desk_state& desk, const call_pointer& call);
/// The same. A request without addresses is of the form with a size in bytes and a latency.
void naive_all_reduce(course_desk_state& desk, const call_pointer& call);

} // namespace ringmaster::gateway
