// Data parallel in a fixed order: the same bits on any number of ranks. The global batch is cut into --virtual-ranks
// parts, independent of the ranks that work on them (virtual nodes: Or, Zhang and Freedman, VirtualFlow, 2022), and the
// gradients are added one after the other, from part 0 on: a rank takes the sum of the ranks before it, adds its own
// parts' gradients, and sends it on; the last rank's sum is broadcast to all. Time: load + forward and backward of a
// rank's parts + for each layer W - 1 hops, which the layers follow each other through, and a broadcast + update.
// Memory: 3 weights a layer, and a gradient for each of a rank's parts; the activations of one part.
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/collective.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

namespace {

uint32_t part_count(const model& m, uint32_t world_size) {
  return m.virtual_ranks != 0 ? m.virtual_ranks : world_size;
}

strategy run_ordered_data_parallel(rank& self, const model& m) {
  const auto parts = part_count(m, self.world_size());
  const auto mine = block_of({}, parts, self.world_size(), self.index());
  std::vector<weight> weights(m.layers);
  std::vector<optimizer_state> states(m.layers);
  std::vector<std::vector<weight_gradient>> gradients(m.layers);
  std::vector<activation> inputs(m.layers + 1);
  for (uint32_t l = 0; l < m.layers; ++l)
    std::tie(weights[l], states[l]) = co_await self.load_weights(l);

  for (auto part = mine.offset; part < mine.offset + mine.count; ++part) {
    inputs[0] = co_await self.input(samples_of(m, static_cast<uint32_t>(part), parts));
    for (uint32_t l = 0; l < m.layers; ++l)
      inputs[l + 1] = co_await self.forward(inputs[l], weights[l]);
    auto by_output = co_await self.loss(inputs[m.layers]);
    inputs[m.layers].drop();
    for (uint32_t l = m.layers; l-- > 0;) {
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self.backward(inputs[l], weights[l], by_output);
      inputs[l].drop();
      gradients[l].push_back(std::move(gradient));
    }
  }

  std::vector<weight_gradient> sums(m.layers);
  for (uint32_t l = m.layers; l-- > 0;) {
    if (!self.first())
      sums[l] = co_await self.receive<weight_gradient>(self.previous());
    for (auto& gradient : gradients[l])
      co_await self.add(sums[l], std::move(gradient));
    if (self.last())
      continue;
    co_await self.send(self.next(), sums[l]);
    sums[l].drop();
  }
  for (uint32_t l = m.layers; l-- > 0;) {
    if (self.world_size() > 1)
      sums[l] = co_await self.broadcast(sums[l], self.world_size() - 1, self.world());
    co_await self.update(weights[l], states[l], std::move(sums[l]));
    co_await self.finish(std::move(weights[l]));
  }
}

caf::error check_ordered_data_parallel(const model& m, uint32_t world_size) {
  const auto parts = part_count(m, world_size);
  if (parts < world_size)
    return invalid(fmt::format("{} {} too few for {}", counted(parts, "virtual rank"), parts == 1 ? "is" : "are",
                               counted(world_size, "rank")));
  if (m.virtual_ranks != 0 && m.global_batch < parts)
    return invalid(fmt::format("a global batch of {} has none for each of {}: --virtual-ranks {} at most",
                               counted(m.global_batch, "sample"), counted(parts, "virtual rank"), m.global_batch));
  return check_data_parallel(m, parts);
}

} // namespace

const known_strategy ordered_data_parallel{
  .name = "ddp-ordered",
  .what = "data parallel whose sums are added in one order: the same bits on any number of ranks (--virtual-ranks)",
  .run = run_ordered_data_parallel,
  .check = check_ordered_data_parallel,
  .cut = batch_cut::never,
  .orders_parts = true,
  .hides_sums = true, // they hop from rank to rank: no bound counts that
  .of_another = true,
  .keeps_sums = true};

} // namespace ringmaster::training
