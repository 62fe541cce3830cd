#pragma once

#include "training/language/executor.hpp"

#include <span>

namespace ringmaster::training {

/// Whether two ranks that meet in a collective mean the same one: operation, layer, root.
bool match(const pending& a, const pending& b);

/// Sets the tag of each rank's result of a collective, from the arguments of all ranks in the order of the group.
/// Errors: invalid_argument where the arguments do not add up, with the rank, the operation and what is missing.
caf::error combine(std::span<pending* const> all);

} // namespace ringmaster::training
