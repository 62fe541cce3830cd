#pragma once

#include "diagnosis/records/job_records.hpp"
#include "messages/journal.pb.h"

#include <span>

namespace ringmaster::diagnosis {

/// A journal's operations as calls of ranks, in the order of the records. A rank of the job is a device: those of the
/// first largest communicator in its order, then all others by id. A group is a communicator in one epoch. Operations
/// have one call for all ranks, so a rank that hangs shows as a call that completed elsewhere; what the failure
/// detector found becomes a note. Operations in the shared-memory mailbox have no call.
job_records journal_job(std::span<const proto::Record> records);

} // namespace ringmaster::diagnosis
