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

/// Whether there is a larger world in which a rank has less of it: of the samples, or of the model.
bool has_less_on_more(const training_job& job, uint32_t world_size, bool of_samples) {
  const auto& by = *job.strategy;
  const auto sides = sides_of(job.shape);
  const auto less_of = [&](const mesh& a, const mesh& b) {
    const bool cut_by_data = by.gathers != sharded::nothing && !(by.shards_in_groups && job.shape.shard_ranks != 0);
    return b.tensor * b.pipeline > a.tensor * a.pipeline
           || ((cut_by_data || (of_samples && job.all_at_once)) && b.data > a.data);
  };
  const auto now = by.shape(step_shape(job, {world_size, sides}), world_size);
  for (uint32_t ranks = world_size + 1; ranks <= 2 * world_size; ++ranks)
    if (can_train(job, {ranks, sides}) && less_of(now, by.shape(step_shape(job, {ranks, sides}), ranks)))
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
  const bool works_on_several = step_shape(job, {world_size, sides_of(job.shape)}).micro_batch > 1;
  if (of_samples && works_on_several)
    ways.emplace_back("with a smaller --micro-batch");
  if (has_less_on_more(job, world_size, of_samples))
    ways.emplace_back("on more ranks");
  const bool is_whole = by->gathers == sharded::nothing && by->shares == sharing::none;
  if (const auto others = that_shard(job, world_size); is_whole && world_size > 1 && !of_samples && !others.empty())
    ways.push_back(fmt::format("under {}, which shard{} what takes it", any_of(others), others.size() == 1 ? "s" : ""));
  return any_of(ways);
}

} // namespace ringmaster::training
