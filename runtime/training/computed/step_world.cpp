#include "runtime/training/computed/step_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// What the job is told, and what comes next to that; the same behind it where something stands in for its strategy.
std::vector<told_sides> wishes(const told_sides& told, bool stands_in) {
  std::vector<told_sides> result{told};
  for (auto data = told.data; data > 1; --data)
    result.push_back({told.tensor, data - 1, told.shard_ranks});
  for (auto tensor = told.tensor; tensor > 1; --tensor)
    result.push_back({tensor - 1, std::min(told.data, 1u), told.shard_ranks});
  for (auto ranks = told.shard_ranks; ranks > 1; --ranks)
    result.push_back({told.tensor, told.data, ranks - 1});
  for (size_t i = 0, count = stands_in ? result.size() : 0; i < count; ++i) {
    result.push_back(result[i]);
    result.back().stands_in = true;
  }
  return result;
}

} // namespace

const known_strategy& strategy_for(const training_job& job, const told_sides& x) {
  return x.stands_in ? *job.strategy->stand_in : *job.strategy;
}

told_sides sides_of(const model& m) {
  return {m.tensor, m.data, m.shard_ranks};
}

model with_sides(model m, const told_sides& x) {
  m.tensor = x.tensor;
  m.data = x.data;
  m.shard_ranks = x.shard_ranks;
  return m;
}

std::string text_of(const told_sides& x) {
  std::vector<std::string> parts;
  if (x.tensor != 0)
    parts.push_back(fmt::format("{} tensor-parallel", x.tensor));
  if (x.data != 0)
    parts.push_back(fmt::format("{} data-parallel", x.data));
  if (x.shard_ranks != 0)
    parts.push_back(fmt::format("{} that share the model", x.shard_ranks));
  return fmt::format("{}", fmt::join(parts, " x "));
}

uint64_t fewest_at_once(const training_job& job, const step_world& x) {
  const auto m = step_shape(job, x);
  auto result = m.global_batch;
  const auto& by = strategy_for(job, x.sides);
  const bool is_told = by.orders_parts && m.virtual_ranks != 0;
  const auto parts = is_told ? m.virtual_ranks : by.shape(m, x.ranks).data;
  for (uint32_t part = 0; part < parts; ++part)
    for (auto& each : micro_batches(m, part, parts))
      result = std::min(result, each.count());
  return result;
}

bool can_train(const training_job& job, const step_world& x) {
  const auto m = step_shape(job, x);
  const auto& by = strategy_for(job, x.sides);
  if (by.check(m, x.ranks))
    return false;
  const auto samples = fewest_at_once(job, x);
  if (std::ranges::any_of(job.layers, [&](auto& each) { return each->samples_min() > samples; }))
    return false;
  const auto tensor = by.shape(m, x.ranks).tensor;
  return tensor == 1 || std::ranges::all_of(job.layers, [&](auto& each) { return each->cannot_share(tensor).empty(); });
}

step_world step_world_of(const training_job& job, uint32_t there, std::span<const step_world> too_small) {
  for (auto& sides : wishes(sides_of(job.shape), job.strategy->stand_in != nullptr))
    for (auto ranks = there; ranks > 0; --ranks) {
      if (std::ranges::any_of(too_small, [&](auto& x) { return x.sides == sides && x.ranks >= ranks; }))
        break;
      if (can_train(job, {ranks, sides}))
        return {ranks, sides};
    }
  return {};
}

model step_shape(const training_job& job, const step_world& x) {
  auto result = with_sides(job.shape, x.sides);
  const auto& by = strategy_for(job, x.sides);
  if (const auto most = job.all_at_once ? samples_of_a_rank(by, result, x.ranks) : 0; most > 0)
    result.micro_batch = most;
  return result;
}

} // namespace ringmaster::training
