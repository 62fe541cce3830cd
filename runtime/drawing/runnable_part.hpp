#pragma once

#include "runtime/schedule/collective.hpp"

#include <span>
#include <vector>

namespace ringmaster {

/// The part of faulty schedules that can still be executed: without steps outside of their buffers, steps without a
/// matching step of their peer, or with one of another size, and without the steps after such a step on its rank and
/// its peer. Deadlocks remain.
std::vector<schedule> runnable_part(proto::CollectiveKind kind, const plan_request& request,
                                    std::span<const schedule> ranks);

} // namespace ringmaster
