#pragma once

#include "runtime/training/transformer/plans/planner.hpp"

#include <string>
#include <vector>

namespace ringmaster::training {

/// Why no plan divides what was asked for, a sentence for each number that does not divide another one: "--tensor 7:
/// 7 does not divide the 32 attention heads". Of a filter's range, where none of its numbers does. Empty where no such
/// number is to blame by itself.
std::vector<std::string> undivided_of(const plan_question& asked);

} // namespace ringmaster::training
