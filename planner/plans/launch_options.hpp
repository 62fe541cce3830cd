#pragma once

#include "planner/plans/plan_filter.hpp"

#include <string>

namespace ringmaster {

/// The plan as Megatron-LM's command-line flags, one group per line, continued with backslashes: how the model is
/// divided and run, without the model's own sizes. A line has at most `columns` unless one flag is longer.
std::string megatron_options(const training::language_model& m, const training::training_setting& how,
                             size_t columns = 100);

/// Stages of Megatron Core's --pipeline-model-parallel-layout, such as "Et*3|t*4|t*3L": E the embedding, t a layer, m a
/// module that predicts a further token, L the loss.
std::string megatron_layout(const training::language_model& m, const training::training_setting& how);

/// The plan as a TOML file for torchtitan.
std::string torchtitan_options(const training::language_model& m, const training::training_setting& how);

/// The options of a framework that can run the plan.
std::string launch_options(training::training_framework x, const training::language_model& m,
                           const training::training_setting& how, size_t columns = 100);

} // namespace ringmaster
