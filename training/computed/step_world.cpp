#include "training/computed/step_world.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// The configured sizes, then the next best ones, then the same with the substitute of the strategy, if it has one.
std::vector<step_setting> preferences(const step_setting& configured, bool stands_in) {
  std::vector<step_setting> result{configured};
  auto add = [&](auto change) {
    result.push_back(configured);
    change(result.back().parallel);
  };
  const auto& asked = configured.parallel;
  for (auto dp = asked.dp; dp > 1; --dp)
    add([&](auto& x) { x.dp = dp - 1; });
  for (auto tp = asked.tp; tp > 1; --tp)
    add([&](auto& x) {
      x.tp = tp - 1;
      x.dp = std::min(x.dp, 1u);
    });
  for (auto ranks = asked.shard_ranks; ranks > 1; --ranks)
    add([&](auto& x) { x.shard_ranks = ranks - 1; });
  for (size_t i = 0, count = stands_in ? result.size() : 0; i < count; ++i) {
    result.push_back(result[i]);
    result.back().stands_in = true;
  }
  return result;
}

/// The smallest micro-batch of any rank in a step of this model.
uint64_t fewest_at_once(const known_strategy& by, const model& m, uint32_t ranks) {
  auto result = m.global_batch;
  const bool is_given = by.orders_parts && m.virtual_ranks != 0;
  const auto parts = is_given ? m.virtual_ranks : by.shape(m, ranks).data;
  for (uint32_t part = 0; part < parts; ++part)
    for (auto& each : micro_batches(m, part, parts))
      result = std::min(result, each.count());
  return result;
}

bool can_train(const training_job& job, const known_strategy& by, const model& m, uint32_t ranks) {
  if (by.check(m, ranks))
    return false;
  const auto samples = fewest_at_once(by, m, ranks);
  if (std::ranges::any_of(job.layers, [&](auto& each) { return each->samples_min() > samples; }))
    return false;
  const auto tensor = by.shape(m, ranks).tensor;
  return tensor == 1 || std::ranges::all_of(job.layers, [&](auto& each) { return !each->cannot_share(tensor); });
}

/// The micro-batch with which a pipeline has at least four micro-batches a stage: then it is idle for less than a fifth
/// of its time (Huang et al., GPipe, 2019). Or the nearest one that strategy and layers accept; 1 if they accept none.
uint64_t pipelined_samples(const training_job& job, const known_strategy& by, model m, uint32_t ranks) {
  constexpr uint64_t each = 4, tried_max = 256; // in either direction
  const auto all = samples_of_a_rank(by, m, ranks);
  if (all == 0)
    return 1;
  const auto fits = [&](uint64_t samples) {
    m.micro_batch = samples;
    return can_train(job, by, m, ranks);
  };
  ensure(by.shape(m, ranks).pipeline > 0, "a pipeline has stages");
  const auto wanted = std::max<uint64_t>(all / (each * by.shape(m, ranks).pipeline), 1);
  ensure(wanted <= all, "a micro-batch is not larger than the batch");
  for (uint64_t less = 0; less < std::min(wanted, tried_max); ++less)
    if (fits(wanted - less))
      return wanted - less;
  for (uint64_t more = 1; more <= std::min(all - wanted, tried_max); ++more)
    if (fits(wanted + more))
      return wanted + more;
  return 1;
}

} // namespace

const known_strategy& strategy_for(const training_job& job, const step_setting& x) {
  ensure(job.strategy != nullptr, "a job has a strategy");
  ensure(!x.stands_in || job.strategy->stand_in != nullptr, "a substitute is used where the strategy has one");
  return x.stands_in ? *job.strategy->stand_in : *job.strategy;
}

step_setting setting_of(const model& m) {
  return {{.tp = m.parallel.tp, .dp = m.parallel.dp, .shard_ranks = m.parallel.shard_ranks}};
}

model with_setting(model m, const step_setting& x) {
  m.parallel.tp = x.parallel.tp;
  m.parallel.dp = x.parallel.dp;
  m.parallel.shard_ranks = x.parallel.shard_ranks;
  return m;
}

std::string text_of(const step_setting& x) {
  std::vector<std::string> parts;
  if (x.parallel.tp != 0)
    parts.push_back(fmt::format("{} tensor-parallel", x.parallel.tp));
  if (x.parallel.dp != 0)
    parts.push_back(fmt::format("{} data-parallel", x.parallel.dp));
  if (x.parallel.shard_ranks != 0)
    parts.push_back(fmt::format("{} that share the model", x.parallel.shard_ranks));
  return fmt::format("{}", fmt::join(parts, " x "));
}

uint64_t fewest_at_once(const training_job& job, const step_world& x) {
  ensure(x.ranks > 0, "a world has ranks");
  return fewest_at_once(strategy_for(job, x.sides), step_shape(job, x), x.ranks);
}

bool can_train(const training_job& job, const step_world& x) {
  return can_train(job, strategy_for(job, x.sides), step_shape(job, x), x.ranks);
}

step_world step_world_of(const training_job& job, uint32_t available, std::span<const step_world> too_small) {
  for (auto& sides : preferences(setting_of(job.shape), job.strategy->stand_in != nullptr))
    for (auto ranks = available; ranks > 0; --ranks) {
      if (std::ranges::any_of(too_small, [&](auto& x) { return x.sides == sides && x.ranks >= ranks; }))
        break;
      if (can_train(job, {ranks, sides}))
        return {ranks, sides};
    }
  return {};
}

model step_shape(const training_job& job, const step_world& x) {
  ensure(!x.sides.stands_in || job.strategy->stand_in != nullptr, "a substitute is used where the strategy has one");
  auto result = with_setting(job.shape, x.sides);
  if (!job.all_at_once)
    return result;
  const auto& by = strategy_for(job, x.sides);
  if (by.is_pipeline())
    result.micro_batch = pipelined_samples(job, by, result, x.ranks);
  else if (const auto most = samples_of_a_rank(by, result, x.ranks); most > 0)
    result.micro_batch = most;
  return result;
}

} // namespace ringmaster::training
