#include "runtime/training/computed/memory_advice.hpp"

#include "runtime/training/computed/step_world.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace ringmaster::training {

namespace {

/// "a, b or c".
std::string any_of(const std::vector<std::string>& all) {
  if (all.size() < 2)
    return fmt::format("{}", fmt::join(all, ""));
  return fmt::format("{} or {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

bool could_be_more(const training_job& job, uint32_t world_size) {
  for (uint32_t ranks = world_size + 1; ranks <= 2 * world_size; ++ranks)
    if (can_train(job, {ranks, sides_of(job.shape)}))
      return true;
  return false;
}

std::vector<std::string> that_shard(training_job job, uint32_t world_size) {
  std::vector<std::string> result;
  for (auto* name : {"zero3", "fsdp", "tensor", "1f1b"}) {
    job.strategy = strategy_of(name);
    if (can_train(job, {world_size, {}}))
      result.emplace_back(name);
  }
  return result;
}

} // namespace

std::string memory_advice(const training_job& job, uint32_t world_size, bool of_samples) {
  std::vector<std::string> ways{"with a larger --device.memory-bytes"};
  const auto* by = job.strategy;
  if (by == nullptr)
    return any_of(ways);
  if (by->gathers != sharded::nothing || by->shares != sharing::none) {
    if (could_be_more(job, world_size))
      ways.emplace_back("on more ranks");
  } else if (const auto others = that_shard(job, world_size); world_size > 1 && !others.empty()) {
    ways.push_back(fmt::format("under {}, which shard{} what takes it", any_of(others), others.size() == 1 ? "s" : ""));
  }
  if (of_samples && step_shape(job, {world_size, sides_of(job.shape)}).micro_batch > 1)
    ways.emplace_back("with a smaller --micro-batch");
  return any_of(ways);
}

} // namespace ringmaster::training
