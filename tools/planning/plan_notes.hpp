#pragma once

#include "planner/search/plan_outcome.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// Which of the system's constants were not fitted to trainings on it, of such models and with such attention; none:
/// all were.
std::optional<std::string> not_calibrated(const training::plan_question& asked);

/// What to know of the best plan before it is relied on, a sentence each: whose speed its is, what nobody has measured,
/// what it takes for granted of where GPUs lie, and what else to ask.
std::vector<std::string> notes_of(const training::plan_outcome& x);

} // namespace ringmaster
