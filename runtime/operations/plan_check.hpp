#pragma once

#include "messages/collective.pb.h"
#include "messages/ids.hpp"

#include <caf/error.hpp>

#include <cstddef>

namespace ringmaster {

/// Whether the device can run a plan that came in a message: it is a rank of it, there is what a plan has for each
/// rank, and the collective makes sense; so do the operations of its series. `members`: the handles that came with it.
/// Ranges of memory are checked when they are laid out, algorithm and reduction when the rank plans. Errors:
/// invalid_argument.
caf::error check_plan(const proto::OperationPlan& plan, device_id device, size_t members);

} // namespace ringmaster
