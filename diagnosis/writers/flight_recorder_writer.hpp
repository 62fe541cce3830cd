#pragma once

#include "diagnosis/records/job_records.hpp"

#include <string>

namespace ringmaster::diagnosis {

/// A rank's records as a dump of PyTorch's Flight Recorder, version 2.10. PyTorch's own tools read it. Fields that they
/// do not have, and ignore: "rank", "host", "pid" and "dump_time_ns" of the dump, "root" of an entry.
std::string flight_recorder_dump(const job_records& job, const rank_records& rank);

/// "ringmaster_rank_3": as PyTorch's tools look for it, with the rank at the end.
std::string dump_name(uint32_t rank);

} // namespace ringmaster::diagnosis
