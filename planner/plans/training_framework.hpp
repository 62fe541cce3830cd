#pragma once

#include "planner/estimates/parallel_setting.hpp"

#include <string>
#include <string_view>

namespace ringmaster::training {

/// A program that trains by a plan; any: plans that no program has are searched, too.
enum class training_framework : uint8_t { any, megatron, torchtitan };

/// megatron, ...
std::string_view name_of(training_framework x);

/// Whether the framework can run such a plan. Megatron: Megatron-LM with Megatron Core and Megatron FSDP; torchtitan:
/// its trainer and options. docs/cost_models.md has the list.
bool can_run(training_framework x, const parallel_setting& how);

} // namespace ringmaster::training
