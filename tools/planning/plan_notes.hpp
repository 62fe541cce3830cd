#pragma once

#include "planner/search/plan_outcome.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Which of the system's constants were not fitted to trainings on it, of such models and with such attention; none:
/// all were.
std::optional<std::string> not_calibrated(const training::plan_question& asked);

/// Caveats of the best plan, a sentence each: which software's speed it assumes, what was never measured, what it
/// assumes about the placement of GPUs, and which other question has a better answer.
std::vector<std::string> notes_of(const training::plan_outcome& x);

} // namespace ringmaster
