#pragma once

#include "diagnosis/records/job_records.hpp"

#include <caf/expected.hpp>

#include <string>
#include <vector>

namespace ringmaster {

/// Reads the evidence in files and directories (with all below them) as one job, on several threads. A directory with a
/// journal is a job of its own. A file that cannot be read is left out, and a remark of the job says why. Errors:
/// io_error for a path that does not exist or a journal that cannot be opened; the first file's error if no file could
/// be read; invalid_argument for a journal beside other evidence.
caf::expected<diagnosis::job_records> read_job(const std::vector<std::string>& paths);

} // namespace ringmaster
