#pragma once

#include "runtime/training/transformer/plans/planner.hpp"

#include <vector>

namespace ringmaster::training {

/// Ascending.
std::vector<uint32_t> divisors_of(uint32_t x);

/// The sides of a world that divide model and samples.
std::vector<parallel_setting> shapes_of(const plan_question& asked);

} // namespace ringmaster::training
