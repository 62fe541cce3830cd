// ZeRO stage 1 with overlap, as Megatron-LM's distributed optimizer has it (Narayanan et al. 2021;
// --overlap-grad-reduce, --overlap-param-gather): a step begins with the rank's shards of the weights that the one
// before updated. They are gathered on a second stream, each layer beside the forward of those before; in the last
// micro-batch's backward a bucket of --chunks layers is summed and scattered there as soon as it has ended; the rank
// updates its shards, and leaves them to the next step.
// Time: load / W + forward and backward + what they do not hide of L all_gathers and L reduce_scatters + update / W.
// Memory: 2 + 1/W weights a layer, and the activations of one micro-batch: of all samples without --micro-batch.
#include "training/strategies/overlapped_sums.hpp"

namespace ringmaster::training {

namespace {

strategy run_overlapping_zero_1(rank& self, const model& m) {
  const shard mine{self.index(), self.world_size()};
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<handle<weight>> gathered(m.layers);
  for (uint32_t l = 0; l < m.layers; ++l) {
    weight part;
    std::tie(part, states[l]) = co_await self.load_weights(l, mine);
    gathered[l] = self.aside(self.all_gather(part));
  }

  overlapped_sums sums{self, m, true};
  co_await sums.run_micro_batches(weights, std::move(gathered));
  for (uint32_t l = m.layers; l-- > 0;) {
    auto sum = co_await sums.take(l);
    auto part = co_await self.slice(std::move(weights[l]), mine);
    co_await self.update(part, states[l], std::move(sum));
    co_await self.finish(std::move(part));
  }
}

} // namespace

const known_strategy overlapping_zero_1{
  .name = "zero1-overlap",
  .what = "zero1 that gathers beside the forward and scatters beside the last backward, --chunks layers at once",
  .run = run_overlapping_zero_1,
  .check = check_data_parallel,
  .cut = batch_cut::when_requested,
  .chunks = chunk_use::buckets,
  .gathers = sharded::the_model,
  .hides_sums = true,
  .keeps_sums = true};

} // namespace ringmaster::training
