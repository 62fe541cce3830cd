#include "training/computed/memory_advice.hpp"

#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace ringmaster::training {

namespace {

/// Whether a rank of some larger world has fewer samples, or less of the model.
bool has_less_on_more(const training_job& job, const step_world& world, bool of_samples) {
  const auto& by = strategy_for(job, world.sides);
  const auto shape_of = [&](const step_world& x) { return by.shape(step_shape(job, x), x.ranks); };
  const auto less_of = [&](const mesh& a, const mesh& b) {
    const bool cut_by_data = by.gathers != sharded::nothing
                             && !(by.shards_in_groups && world.sides.parallel.shard_ranks != 0);
    return b.tensor * b.pipeline > a.tensor * a.pipeline
           || ((cut_by_data || (of_samples && job.all_at_once)) && b.data > a.data);
  };
  for (auto larger = world; larger.ranks < 2 * world.ranks;) {
    ++larger.ranks;
    if (can_train(job, larger) && less_of(shape_of(world), shape_of(larger)))
      return true;
  }
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

std::string memory_advice(const training_job& job, const step_world& world, bool of_samples) {
  std::vector<std::string> ways{"with a larger --device.memory-bytes"};
  if (job.strategy == nullptr)
    return choice_text(ways);
  const auto& by = strategy_for(job, world.sides);
  if (of_samples && step_shape(job, world).micro_batch > 1)
    ways.emplace_back("with a smaller --micro-batch");
  if (has_less_on_more(job, world, of_samples))
    ways.emplace_back("on more ranks");
  const bool is_whole = by.gathers == sharded::nothing && by.shares == sharing::none;
  if (of_samples || !is_whole || world.ranks == 1)
    return choice_text(ways);
  if (const auto others = that_shard(job, world.ranks); !others.empty())
    ways.push_back(fmt::format("under {}, which shard{} what takes it", choice_text(others),
                               others.size() == 1 ? "s" : ""));
  return choice_text(ways);
}

} // namespace ringmaster::training
