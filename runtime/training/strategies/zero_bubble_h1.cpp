// Zero-bubble pipeline, ZB-H1 (Qi et al. 2023): 1F1B whose backward is split. The gradient by the input goes to the stage
// before at once; the gradient by the weight waits until the rank would be idle: stage r keeps r of them back.
// With F, B and W for forward and the halves of backward the bubble is (p-1)(F+B-W), where 1F1B has (p-1)(F+B+W); a stage holds
// as many micro-batches as with 1F1B, and what the postponed halves need.
#include "runtime/training/strategies/pipeline.hpp"

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run(rank& self, const model& m) {
  auto batches = micro_batches(m, {0, m.global_batch});
  const auto count = static_cast<uint32_t>(batches.size());
  std::vector<pipeline_step> order;
  uint32_t weights_done = 0;
  for (auto step : one_forward_one_backward_order(self.world_size() - 1 - self.index(), count)) {
    if (step.what == kind::backward)
      step.what = kind::backward_input;
    order.push_back(step);
    if (step.what == kind::backward_input && step.micro_batch >= self.index())
      order.push_back({kind::backward_weight, weights_done++});
  }
  while (weights_done < count)
    order.push_back({kind::backward_weight, weights_done++});
  return run_pipeline(self, m, std::move(batches), std::move(order));
}

} // namespace

const known_strategy zero_bubble_h1{"zb-h1", "zero-bubble ZB-H1: gradients by weights fill the gaps of 1F1B", run, check_pipeline};

} // namespace ringmaster::training
