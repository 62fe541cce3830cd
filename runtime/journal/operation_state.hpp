#pragma once

#include "messages/journal.pb.h"

#include <cstdint>

namespace ringmaster {

/// Updates the state of an operation, which is empty at first, with its next record: the timeline's number `index`.
/// The record must belong to an operation (operation_of).
void advance(proto::OperationState& state, const proto::Record& record, uint64_t index);

/// Counts `record` as the timeline's next one and keeps the highest ids.
void advance(proto::JournalState& state, const proto::Record& record);

/// The state of a timeline without records.
proto::JournalState empty_journal();

} // namespace ringmaster
