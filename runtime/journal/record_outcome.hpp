#pragma once

#include "messages/journal.pb.h"

#include <optional>

namespace ringmaster {

/// How what the record tells of has ended, where it says so itself: a command, calls that were refused, a communicator
/// that was aborted. What belongs to an operation stands as the operation does.
std::optional<gpu_sim::Status> outcome_of(const proto::Record& record);

} // namespace ringmaster
