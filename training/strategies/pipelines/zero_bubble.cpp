// Zero-bubble pipelines (Qi et al. 2023): a backward is split. The gradient by the input goes to the stage before at
// once; the gradient by the weight waits until the rank would be idle. F, B and W are the times of forward and of
// the halves.
// ZB-H1 is 1F1B whose stage r keeps r weights' gradients back: its bubble is (p-1)(F+B-W), where 1F1B has (p-1)(F+B+W);
// a stage holds as many micro-batches as with 1F1B, and what the postponed halves need.
// ZB-H2 runs 2(p-r)-1 forwards ahead and keeps 2r back. Between its first and its last operation a rank waits for
// (p-1)(F+B-2W), which is nothing where the three are equal; a stage holds up to 2p-1 micro-batches. Ranks end one
// after the other.
#include "training/strategies/pipelines/pipeline.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

pipeline_order split_order(uint32_t ahead, uint32_t kept_back, uint32_t micro_batches) {
  std::vector<pipeline_step> order;
  order.reserve(3 * size_t{micro_batches});
  uint32_t weights_done = 0;
  for (uint32_t i = 0; i < 2 * micro_batches; ++i) {
    auto step = one_forward_one_backward_step(i, ahead, micro_batches);
    const bool backward = step.what == kind::backward;
    if (backward)
      step.what = kind::backward_input;
    order.push_back(step);
    if (backward && step.micro_batch >= kept_back)
      order.push_back({kind::backward_weight, weights_done++});
  }
  while (weights_done < micro_batches)
    order.push_back({kind::backward_weight, weights_done++});
  return pipeline_order::listed(std::move(order));
}

strategy run_zero_bubble(rank& self, const model& m, bool second) {
  const auto shape = pipeline_mesh(m, self.world_size());
  const auto count = pipeline_micro_batches(m, shape), p = shape.pipeline, r = shape.stage(self.index());
  const auto ahead = second ? 2 * (p - 1 - r) : p - 1 - r;
  return run_pipeline(self, m, {shape, split_order(std::min(ahead, count), second ? 2 * r : r, count)});
}

} // namespace

const known_strategy zero_bubble_h1{.name = "zb-h1",
                                    .what = "zero-bubble ZB-H1: gradients by weights fill the gaps of 1F1B",
                                    .run = [](rank& self, const model& m) { return run_zero_bubble(self, m, false); },
                                    .check = check_pipeline,
                                    .shape = pipeline_mesh,
                                    .shares = sharing::stages,
                                    .held = holds_one_a_stage};
const known_strategy zero_bubble_h2{.name = "zb-h2",
                                    .what = "zero-bubble ZB-H2: more micro-batches ahead leave no gaps",
                                    .run = [](rank& self, const model& m) { return run_zero_bubble(self, m, true); },
                                    .check = check_pipeline,
                                    .shape = pipeline_mesh,
                                    .shares = sharing::stages,
                                    .held = holds_one_a_stage};

} // namespace ringmaster::training
