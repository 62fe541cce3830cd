#pragma once

#include "diagnosis/findings/diagnosis.hpp"
#include "tools/console/page_format.hpp"

#include <string>

namespace ringmaster {

/// The answer for a terminal: a sentence, the chain of waits, the calls side by side, doubts and next steps.
std::string report_of(const diagnosis::job_records& job, const diagnosis::diagnosis_result& x, const page_format& page);

/// The same as one JSON object on one line.
std::string json_of(const diagnosis::job_records& job, const diagnosis::diagnosis_result& x);

/// Ranks against time as SVG: each rank's calls around the time at which the others began to wait, colored by process
/// group; open calls reach to the end. At most 64 ranks: the cause and those whose calls are evidence first.
std::string picture_of(const diagnosis::job_records& job, const diagnosis::diagnosis_result& x);

} // namespace ringmaster
