#pragma once

#include "planner/models/language_model.hpp"
#include "planner/plans/plan_filter.hpp"
#include "planner/systems/gpu_system.hpp"

namespace ringmaster::training {

/// A question: how to train this model on this many devices.
struct plan_question {
  language_model trained;
  gpu_system system;
  uint32_t devices = 1;
  uint32_t global_batch = 1;
  plan_filter filter{};
};

} // namespace ringmaster::training
