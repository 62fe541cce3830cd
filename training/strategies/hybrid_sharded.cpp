// Hybrid sharding (Zhao et al., PyTorch FSDP, 2023): groups of --shard neighbours each share the model as fsdp's ranks
// do, and hold a copy of it together. What moves for each layer stays within a group, as within a host; a shard's sum
// alone goes on over its replicas in the other groups, once, beside the last micro-batch's backward.
// Where --shard is not given a group is 8 ranks where the world is more of them, or else half of the world.
// Time: fsdp's over S ranks + what the backward does not hide of L all_reduces of 1/S of a layer.
// Memory: fsdp's, with 3/S weights a layer.
#include "training/strategies/tensor_parallel.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

uint32_t sharers_of(const model& m, uint32_t world_size) {
  constexpr uint32_t host = 8;
  if (m.parallel.shard_ranks != 0)
    return m.parallel.shard_ranks;
  if (world_size > host && world_size % host == 0)
    return host;
  return world_size % 2 == 0 ? world_size / 2 : world_size;
}

strategy run_hybrid_sharded(rank& self, const model& m) {
  const auto count = sharers_of(m, self.world_size()), index = self.index() % count;
  const group sharers{self.index() - index, count, 1}, replicas{index, self.world_size() / count, count};
  return run_fully_sharded(self, m, sharers, replicas);
}

caf::error check_hybrid_sharded(const model& m, uint32_t world_size) {
  if (const auto count = sharers_of(m, world_size); world_size % count != 0)
    return invalid(fmt::format("{} ranks are no groups of {}: --shard must divide them", world_size, count));
  return check_data_parallel(m, world_size);
}

} // namespace

const known_strategy hybrid_sharded{.name = "hsdp",
                                    .what = "fsdp in groups of --shard ranks, whose sums go on over all groups",
                                    .run = run_hybrid_sharded,
                                    .check = check_hybrid_sharded,
                                    .cut = batch_cut::when_requested,
                                    .gathers = sharded::the_model,
                                    .needs = beyond::groups,
                                    .prefetches = true,
                                    .shards_in_groups = true,
                                    .hides_sums = true};

} // namespace ringmaster::training
