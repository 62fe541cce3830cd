#pragma once

#include "runtime/training/simulator.hpp"
#include "runtime/training/strategy_search.hpp"
#include "runtime/training/transformer/planner.hpp"

#include <optional>
#include <string>

namespace ringmaster {

/// What was planned for.
struct plan_question {
  training::gpt trained;
  training::gpu_system system;
  uint32_t devices = 0;
  uint32_t global_batch = 0;
};

/// Of the best plan, simulated operation by operation; none: why not.
struct plan_confirmation {
  std::optional<training::training_outcome> found;
  std::string problem;
};

std::string report_of(const plan_question& asked, const training::transformer_plans& found, const plan_confirmation& confirmed);
std::string json_of(const plan_question& asked, const training::transformer_plans& found, const plan_confirmation& confirmed);

struct search_question {
  const training::cost_model* costs = nullptr;
  uint32_t ranks = 0, layers = 0;
  uint64_t global_batch = 0;
};

std::string report_of(const search_question& asked, const training::search_outcome& found);
std::string json_of(const search_question& asked, const training::search_outcome& found);

} // namespace ringmaster
