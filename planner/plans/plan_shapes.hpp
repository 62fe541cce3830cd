#pragma once

#include "planner/plans/plan_question.hpp"

#include <vector>

namespace ringmaster::training {

/// Ascending.
std::vector<uint32_t> divisors_of(uint32_t x);

/// The divisors of the devices that each degree may have by itself, ascending: as many tensor-, context- and
/// data-parallel ranks as divide the heads, the sequence and the batch, as many stages as the layers fill, and all of
/// them within the filter.
std::vector<uint32_t> tensor_degrees_of(const plan_question& asked);
std::vector<uint32_t> context_degrees_of(const plan_question& asked);
std::vector<uint32_t> data_degrees_of(const plan_question& asked);
std::vector<uint32_t> pipeline_degrees_of(const plan_question& asked);

/// Whether no chunk of a stage is empty.
bool all_stages_have_layers(const parallel_setting& how, uint32_t layers);

/// The sides of a world that divide model and samples.
std::vector<parallel_setting> shapes_of(const plan_question& asked);

} // namespace ringmaster::training
