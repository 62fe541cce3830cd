#pragma once

#include "planner/search/plan_outcome.hpp"
#include "tools/console/page_format.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

std::string report_of(const training::plan_outcome& x, const page_format& page = {});
std::string json_of(const training::plan_outcome& x);
/// One line per plan: the best, then the front.
std::string csv_of(const training::plan_outcome& x);

/// Which of the system's constants were not fitted to trainings on it, of such models and with such attention; none:
/// all were.
std::optional<std::string> not_calibrated(const training::plan_question& asked);

/// Caveats of the best plan, a sentence each: which software's speed it assumes, what was never measured, what it
/// assumes about the placement of GPUs, and which other question has a better answer.
std::vector<std::string> notes_of(const training::plan_outcome& x);

} // namespace ringmaster
