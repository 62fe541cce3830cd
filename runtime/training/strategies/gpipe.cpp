// GPipe (Huang et al. 2019): all forwards of the micro-batches, then all backwards, first in first out.
// With p stages and m micro-batches the bubble is (p-1)/(m+p-1) of the time; a stage holds the activations of all m.
#include "runtime/training/strategies/pipeline.hpp"

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run(rank& self, const model& m) {
  auto batches = micro_batches(m, {0, m.global_batch});
  const auto count = static_cast<uint32_t>(batches.size());
  std::vector<pipeline_step> order;
  for (auto what : {kind::forward, kind::backward})
    for (uint32_t i = 0; i < count; ++i)
      order.push_back({what, i});
  return run_pipeline(self, m, std::move(batches), std::move(order));
}

} // namespace

const known_strategy gpipe{"gpipe", "GPipe: all forwards, then all backwards", run, check_pipeline};

} // namespace ringmaster::training
