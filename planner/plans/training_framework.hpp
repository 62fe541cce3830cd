#pragma once

#include "planner/estimates/training_setting.hpp"

#include <string>
#include <string_view>

namespace ringmaster::training {

/// A program that runs plans. any: also searches plans that no program can run.
enum class training_framework : uint8_t { any, megatron, torchtitan };

/// megatron, ...
std::string_view name_of(training_framework x);

/// Whether the framework can run such a plan. Megatron: Megatron-LM with Megatron Core and Megatron FSDP; torchtitan:
/// its trainer and options. docs/cost_models.md has the list.
bool can_run(training_framework x, const training_setting& how);

} // namespace ringmaster::training
