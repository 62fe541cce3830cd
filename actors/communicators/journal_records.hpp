#pragma once

#include "messages/journal.pb.h"
#include "runtime/epochs/epoch_change.hpp"
#include "runtime/operations/operation.hpp"

#include <vector>

namespace ringmaster {

// What a communicator writes to the journal.

proto::Record record_of_start(const operation& op, communicator_id communicator);
proto::Record record_of_end(const operation& op, communicator_id communicator, uint64_t unix_ns);
proto::Record record_of_epoch(const epoch_change::epoch_opened& x, communicator_id communicator,
                              const std::vector<rank_device>& ranks);
/// A rank's part has ended: one record for each operation of a series.
std::vector<proto::Record> records_of_rank_end(const proto::RankReport& x);

} // namespace ringmaster
