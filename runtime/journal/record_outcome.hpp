#pragma once

#include "messages/journal.pb.h"

#include <optional>

namespace ringmaster {

/// The outcome that a record has itself: of a command, of refused calls, of an aborted communicator. None for a record
/// of an operation, whose outcome is the operation's.
std::optional<gpu_sim::Status> outcome_of(const proto::Record& record);

} // namespace ringmaster
