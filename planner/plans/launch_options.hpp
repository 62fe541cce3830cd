#pragma once

#include "planner/plans/plan_question.hpp"

#include <string>

namespace ringmaster {

/// The plan as Megatron-LM's command-line flags, a group a line, with a backslash at the end of all but the last. What
/// says how the model is divided and run; the model's own sizes are not among them. A line has at most `columns`, where
/// its flag and value do.
std::string megatron_options(const training::language_model& m, const training::parallel_setting& how,
                             size_t columns = 100);

/// Stages of Megatron Core's --pipeline-model-parallel-layout, such as "Et*3|t*4|t*3L": E the embedding, t a layer, m a
/// module that predicts a further token, L the loss.
std::string megatron_layout(const training::language_model& m, const training::parallel_setting& how);

/// The plan as a TOML file of torchtitan's.
std::string torchtitan_options(const training::language_model& m, const training::parallel_setting& how);

/// Those of a framework that can run it.
std::string launch_options(training::training_framework x, const training::language_model& m,
                           const training::parallel_setting& how, size_t columns = 100);

} // namespace ringmaster
