#pragma once

#include "messages/journal.pb.h"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// Which samples each step of training took that counts, from the journal's records of them: a line a step, and how
/// many of an epoch's there were. A step that was done again, because what came behind it was lost, is there once, also
/// where a later run has gone on from a checkpoint of the same training, which is told under the number of its first
/// run. `json`: an object a line. Errors: corrupt, for a record that no run can have written.
caf::expected<std::string> samples_text(const std::vector<proto::Record>& records, bool json);

} // namespace ringmaster
