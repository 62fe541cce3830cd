#pragma once

#include "planner/plans/plan_filter.hpp"

#include <string>
#include <vector>

namespace ringmaster::training {

/// Why no plan divides the model, the batch and the devices, a sentence for each reason: a number that does not divide
/// another one
/// ("--tensor 7: 7 does not divide the 32 attention heads"), a range of which no number does, devices that no product
/// of the possible degrees makes, a schedule that the framework does not have. Empty if there is another reason,
/// such as a schedule that needs more micro-batches.
std::vector<std::string> undivided_of(const plan_question& asked);

} // namespace ringmaster::training
