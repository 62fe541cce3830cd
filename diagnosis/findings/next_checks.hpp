#pragma once

#include "diagnosis/findings/diagnosis.hpp"

namespace ringmaster::diagnosis {

/// What to do next, the most useful first; a sentence each.
std::vector<std::string> next_checks(const job_records& job, const diagnosis_result& x);

} // namespace ringmaster::diagnosis
