// 1F1B (Narayanan et al., PipeDream-Flush, 2021): stage r of p runs p-1-r forwards ahead, then a forward and a backward by
// turns, then the backwards that are left.
// The bubble is GPipe's, (p-1)/(m+p-1) of the time; a stage holds the activations of at most p micro-batches, not m.
#include "runtime/training/strategies/pipeline.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run(rank& self, const model& m) {
  auto batches = micro_batches(m, {0, m.global_batch});
  const auto count = static_cast<uint32_t>(batches.size());
  const auto ahead = std::min(self.world_size() - 1 - self.index(), count);
  std::vector<pipeline_step> order;
  for (uint32_t i = 0; i < ahead; ++i)
    order.push_back({kind::forward, i});
  for (uint32_t i = 0; i < count; ++i) {
    if (ahead + i < count)
      order.push_back({kind::forward, ahead + i});
    order.push_back({kind::backward, i});
  }
  return run_pipeline(self, m, std::move(batches), std::move(order));
}

} // namespace

const known_strategy one_forward_one_backward{"1f1b", "1F1B: a forward and a backward by turns", run, check_pipeline};

} // namespace ringmaster::training
