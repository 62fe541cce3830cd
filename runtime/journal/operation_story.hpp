#pragma once

#include "messages/journal.pb.h"
#include "runtime/journal/record_filter.hpp"

#include <chrono>
#include <span>
#include <string>

namespace ringmaster {

/// What happened to one operation, in plain English on one screen: who called it and when, its algorithm and route, its
/// attempts, who waited for whom, verdicts, epochs, how it ended, and how long each part took. `records`: those of its
/// communicator, oldest first. Empty: none of them is about the operation. Pure.
std::string story_of(std::span<const proto::Record> records, operation_key which, std::chrono::seconds utc_offset);

} // namespace ringmaster
