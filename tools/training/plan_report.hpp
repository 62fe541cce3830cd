#pragma once

#include "runtime/training/search/strategy_search.hpp"
#include "runtime/training/simulated/simulator.hpp"
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

/// What a plan takes, simulated operation by operation.
struct simulated_plan {
  double seconds = 0;
  double memory_bytes = 0; ///< Of the rank that holds the most.
  uint64_t operations = 0;
};

/// One of the best, and the same simulated; none: why not.
struct confirmed_plan {
  training::planned plan;
  std::optional<simulated_plan> simulated;
  std::string problem;
};

/// `best` are in the order in which they are to stand.
std::string report_of(const plan_question& asked, const training::transformer_plans& found,
                      const std::vector<confirmed_plan>& best);
std::string json_of(const plan_question& asked, const training::transformer_plans& found,
                    const std::vector<confirmed_plan>& best);

struct search_question {
  const training::cost_model* costs = nullptr;
  uint32_t ranks = 0, layers = 0;
  uint64_t global_batch = 0;
};

std::string report_of(const search_question& asked, const training::search_outcome& found);
std::string json_of(const search_question& asked, const training::search_outcome& found);

} // namespace ringmaster
