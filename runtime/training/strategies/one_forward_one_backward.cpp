// 1F1B (Narayanan et al., PipeDream-Flush, 2021): stage r of p runs p-1-r forwards ahead, then a forward and a backward by
// turns, then the backwards that are left.
// The bubble is GPipe's, (p-1)/(m+p-1) of the time; a stage holds the activations of at most p micro-batches, not m.
#include "runtime/training/strategies/pipeline.hpp"

#include <algorithm>

namespace ringmaster::training {

std::vector<pipeline_step> one_forward_one_backward_order(uint32_t ahead, uint32_t micro_batches) {
  using kind = pipeline_step::kind;
  ahead = std::min(ahead, micro_batches);
  std::vector<pipeline_step> order;
  for (uint32_t i = 0; i < ahead; ++i)
    order.push_back({kind::forward, i});
  for (uint32_t i = 0; i < micro_batches; ++i) {
    if (ahead + i < micro_batches)
      order.push_back({kind::forward, ahead + i});
    order.push_back({kind::backward, i});
  }
  return order;
}

namespace {

strategy run(rank& self, const model& m) {
  auto batches = micro_batches(m, {0, m.global_batch});
  auto order = one_forward_one_backward_order(self.world_size() - 1 - self.index(), static_cast<uint32_t>(batches.size()));
  return run_pipeline(self, m, std::move(batches), std::move(order));
}

} // namespace

const known_strategy one_forward_one_backward{"1f1b", "1F1B: a forward and a backward by turns", run, check_pipeline};

} // namespace ringmaster::training
