#pragma once

#include "messages/journal.pb.h"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// The samples of each training step, from the journal's records: a line for each step, and the number of samples of
/// each epoch. A repeated step appears once, also if a later run continued the training from a checkpoint; that run is
/// shown under the number of the first one. `json`: one object per line. Errors: corrupt, for an impossible record.
caf::expected<std::string> samples_text(const std::vector<proto::Record>& records, bool json);

} // namespace ringmaster
