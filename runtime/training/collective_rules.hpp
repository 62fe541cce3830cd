#pragma once

#include "runtime/training/executor.hpp"

#include <span>
#include <string>

namespace ringmaster::training {

/// Whether two ranks that meet in a collective mean the same one: operation, layer, root.
bool match(const pending& a, const pending& b);

/// What a collective makes of its ranks' arguments, in the order of the group: gives each its result's tag.
/// Returns a sentence with the rank, the operation and what was missing where they do not add up, or nothing.
std::string combine(std::span<pending* const> all);

} // namespace ringmaster::training
