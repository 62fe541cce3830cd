// Interleaved 1F1B (Narayanan et al., Megatron-LM, 2021): each rank has v stages of the model, r, r+p, r+2p, ..., and runs p
// micro-batches of one stage, then p of the next. The number of micro-batches must be a multiple of p.
// The bubble is (p-1)/(v m) of the ideal time, 1/v of 1F1B's, for v times the hops; rank 0 holds the activations of about
// p (1 + (p-1)/(pv)) micro-batches.
#include "runtime/training/strategies/pipeline.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run(rank& self, const model& m) {
  const auto p = self.world_size(), v = m.chunks;
  auto batches = micro_batches(m, {0, m.global_batch});
  const auto count = static_cast<uint32_t>(batches.size()), total = count * v;
  auto ahead = std::min(2 * (p - 1 - self.index()) + (v - 1) * p, total);
  if (count == p)
    ahead = total;
  auto step = [&](kind what, uint32_t k) {
    auto chunk = k % (p * v) / p;
    return pipeline_step{what, k / (p * v) * p + k % p, what == kind::forward ? chunk : v - 1 - chunk};
  };
  std::vector<pipeline_step> order;
  for (uint32_t k = 0; k < ahead; ++k)
    order.push_back(step(kind::forward, k));
  for (uint32_t k = 0; k < total; ++k) {
    if (ahead + k < total)
      order.push_back(step(kind::forward, ahead + k));
    order.push_back(step(kind::backward, k));
  }
  return run_pipeline(self, m, std::move(batches), std::move(order), v);
}

caf::error check(const model& m, uint32_t world_size) {
  auto refused = [](std::string why) { return make_error(errc::invalid_argument, "interleaved: " + std::move(why)); };
  auto count = micro_batch_count(m);
  if (world_size < 2)
    return refused("one rank has nobody to pass on to; 2 or more have");
  if (m.chunks < 2)
    return refused("it needs 2 chunks or more; with one it is 1f1b");
  if (m.layers < uint64_t{world_size} * m.chunks)
    return refused(fmt::format("{} ranks of {} chunks need at least {} layers, not {}", world_size, m.chunks,
                               uint64_t{world_size} * m.chunks, m.layers));
  if (count % world_size != 0)
    return refused(fmt::format("{} micro-batches are no multiple of {} ranks", count, world_size));
  return caf::none;
}

} // namespace

const known_strategy interleaved{"interleaved", "interleaved 1F1B: several stages a rank (--chunks)", run, check};

} // namespace ringmaster::training
