#pragma once

#include "runtime/schedule/collective.hpp"

#include <span>
#include <vector>

namespace ringmaster {

/// The part of all ranks' schedules that can be walked although they have a fault: without steps that are outside of
/// their buffers, that no step of their peer meets, or that meet one of another size, and without whatever comes after
/// such a step on its rank or its peer. Ranks that wait for each other in a circle stay so.
std::vector<schedule> runnable_part(proto::CollectiveKind kind, const plan_request& request,
                                    std::span<const schedule> ranks);

} // namespace ringmaster
