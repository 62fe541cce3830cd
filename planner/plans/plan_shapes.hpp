#pragma once

#include "planner/plans/plan_filter.hpp"

#include <vector>

namespace ringmaster::training {

/// Ascending.
std::vector<uint32_t> divisors_of(uint32_t x);

/// The divisors of the devices that each degree may have by itself, ascending. Tensor-, context- and data-parallel
/// ranks divide the heads, the sequence and the batch; layers fill all stages; the filter accepts them.
std::vector<uint32_t> tensor_degrees_of(const plan_question& asked);
std::vector<uint32_t> context_degrees_of(const plan_question& asked);
std::vector<uint32_t> data_degrees_of(const plan_question& asked);
std::vector<uint32_t> pipeline_degrees_of(const plan_question& asked);

/// Whether no chunk of a stage is empty.
bool all_stages_have_layers(const training_setting& how, uint32_t layers);

/// All combinations of degrees that divide the model and the batch.
std::vector<training_setting> shapes_of(const plan_question& asked);

} // namespace ringmaster::training
