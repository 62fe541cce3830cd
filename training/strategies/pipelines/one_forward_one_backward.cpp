// 1F1B (Narayanan et al., PipeDream-Flush, 2021): stage r of p runs p-1-r forwards ahead, then alternately a
// forward and a backward, then the remaining backwards.
// The bubble is GPipe's, (p-1)/(m+p-1) of the time; a stage holds the activations of at most p micro-batches, not m.
#include "training/strategies/pipelines/pipeline.hpp"

#include <algorithm>

namespace ringmaster::training {

using kind = pipeline_step::kind;

pipeline_step one_forward_one_backward_step(uint32_t i, uint32_t ahead, uint32_t micro_batches) {
  if (i < ahead)
    return {kind::forward, i};
  const auto turn = (i - ahead) / 2;
  if (turn >= micro_batches - ahead)
    return {kind::backward, i - micro_batches};
  return (i - ahead) % 2 == 0 ? pipeline_step{kind::forward, ahead + turn} : pipeline_step{kind::backward, turn};
}

namespace {

strategy run_one_forward_one_backward(rank& self, const model& m) {
  const auto shape = pipeline_mesh(m, self.world_size());
  const auto count = pipeline_micro_batches(m, shape);
  const auto ahead = std::min(shape.pipeline - 1 - shape.stage(self.index()), count);
  return run_pipeline(self, m,
                      {shape, {2 * count, [=](uint32_t i) { return one_forward_one_backward_step(i, ahead, count); }}});
}

} // namespace

const known_strategy one_forward_one_backward{.name = "1f1b",
                                              .what = "1F1B: a forward and a backward alternate",
                                              .run = run_one_forward_one_backward,
                                              .check = check_pipeline,
                                              .shape = pipeline_mesh,
                                              .shares = sharing::stages,
                                              .held = holds_one_a_stage};

} // namespace ringmaster::training
