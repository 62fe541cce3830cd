#pragma once

#include "messages/journal.pb.h"

#include <cstdint>

namespace ringmaster {

/// Takes what `record`, the timeline's record `index`, says of its operation into `state`, which is empty at first.
/// The record must belong to an operation (operation_of).
void advance(proto::OperationState& state, const proto::Record& record, uint64_t index);

/// Counts `record` as the next of the timeline and remembers the ids it names.
void advance(proto::JournalState& state, const proto::Record& record);

/// A timeline without a record.
proto::JournalState empty_journal();

} // namespace ringmaster
