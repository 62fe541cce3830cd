#pragma once

#include "messages/journal.pb.h"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// Writes a dump for each rank of the journal's job to the directory, which is created. Returns their number. Errors:
/// io_error.
caf::expected<uint64_t> write_flight_recorder_files(const std::vector<proto::Record>& records, const std::string& dir);

} // namespace ringmaster
