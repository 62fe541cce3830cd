#pragma once

#include "planner/models/known_models.hpp"
#include "planner/plans/plan_search.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include "tests/training/language/strategy_outcome.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <random>

namespace ringmaster::test {

using namespace ringmaster::training;

struct drawn_plan {
  language_model trained;
  gpu_system on;
  parallel_setting how;
};

struct agreement {
  double time = 0, memory = 0; ///< The closed form's, as a part of what is simulated.
};

/// Of what a strategy takes and holds that stands for the plan.
inline agreement agreement_with(const known_strategy& which, const model& trained, uint32_t ranks,
                                const cost_model& costs, const drawn_plan& x) {
  const auto done = outcome_of(which.name, trained, ranks, costs);
  const auto estimate = estimate_iteration(x.trained, x.on, x.how);
  return {estimate.seconds / done.end, estimate.memory_bytes / static_cast<double>(peak_memory_of(done))};
}

/// One that the search of a drawn question has tried, by one of these schedules, where there are any, and one of these
/// ways of sharding; with or without modules that predict further tokens, or as the model is published. `change` has
/// the question before it is asked.
inline drawn_plan draw(
  std::mt19937& random, std::initializer_list<const char*> schedules, std::initializer_list<const char*> sharings,
  bool with_modules = false, const std::function<void(plan_question&)>& change = [](auto&) {}) {
  auto any = [&](auto&& all) { return *(std::begin(all) + random() % std::size(all)); };
  const auto name = any(std::to_array<const char*>({"llama3-8b", "llama3-70b", "gpt3-13b", "qwen3-30b-a3b",
                                                    "qwen3-235b-a22b", "mixtral-8x7b", "gpt-oss-120b", "deepseek-v3"}));
  const auto system = any(std::to_array<const char*>({"a100-80g", "h100-80g", "b200", "gb200-nvl72"}));
  plan_question asked{*model_of(name), *system_of(system), any(std::to_array<uint32_t>({8, 16, 32, 64})), 0, {}};
  asked.global_batch = any(std::to_array<uint32_t>({32, 64, 96, 128}));
  asked.system.memory_bytes = 1e15; // all fit
  if (with_modules && asked.trained.experts.count > 0)
    asked.trained.multi_token = any(std::to_array<uint32_t>({0, 1, 2}));
  asked.filter.only = {any(sharings)};
  if (schedules.size() > 0)
    asked.filter.only.emplace_back(any(schedules));
  change(asked);
  const auto found = plan_transformer(asked, 100'000);
  return {asked.trained, asked.system, found.best.empty() ? parallel_setting{} : any(found.best).how};
}

inline std::string text_of(const drawn_plan& x) {
  auto& how = x.how;
  return fmt::format(
    "{} with {} modules on {}: t{} c{} d{} e{} p{} v{} {}, {} micro-batches of {}, recompute {}, sequence parallel "
    "{}, zero{}, shard {}",
    x.trained.name, x.trained.multi_token, x.on.name, how.shape.tensor, how.context, how.shape.data, how.expert,
    how.shape.pipeline, how.chunks, name_of(how.schedule), how.micro_batches(), how.micro_batch, name_of(how.again),
    how.sequence_parallel, how.zero, how.shard);
}

} // namespace ringmaster::test
