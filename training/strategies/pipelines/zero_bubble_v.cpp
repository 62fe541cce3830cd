// Zero-bubble pipeline ZB-V (Qi et al., Pipeline Parallelism with Controllable Memory, 2024): the model's 2p stages
// go there and back, rank r has stages r and 2p-1-r, so that the rank which begins a micro-batch also ends it, and
// all hold alike.
// Where F, B and W are equal and there are 2p-1 micro-batches or more, no rank waits between its first and its last
// operation; each holds the activations of p micro-batches, as the first one of 1F1B does.
#include "training/strategies/pipelines/pipeline.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

/// Writes a rank's steps; chunk 0 is the way there, 1 the way back. Micro-batches that there are not are left out.
class zero_bubble_v_steps {
public:
  explicit zero_bubble_v_steps(uint32_t micro_batches) : micro_batches_(micro_batches) {}

  void forward(uint32_t chunk) { add(kind::forward, chunk, forwards_[chunk]++); }
  void backward(uint32_t chunk) { add(kind::backward_input, chunk, backwards_[chunk]++); }
  void weight(uint32_t chunk) { add(kind::backward_weight, chunk, weights_[chunk]++); }

  uint32_t forwards(uint32_t chunk) const { return forwards_[chunk]; }
  bool owes(uint32_t chunk) const { return weights_[chunk] < backwards_[chunk]; }
  pipeline_order order() { return pipeline_order::listed(std::move(steps_)); }

private:
  void add(kind what, uint32_t chunk, uint32_t micro_batch) {
    if (micro_batch < micro_batches_)
      steps_.push_back({what, micro_batch, chunk});
  }

  uint32_t micro_batches_;
  uint32_t forwards_[2]{}, backwards_[2]{}, weights_[2]{};
  std::vector<pipeline_step> steps_;
};

pipeline_order zero_bubble_v_order(uint32_t p, uint32_t r, uint32_t micro_batches) {
  const auto scheduled = std::max(2 * p - 1, micro_batches);
  zero_bubble_v_steps steps{micro_batches};
  for (uint32_t i = 0; i < 2 * (p - r) - 1; ++i)
    steps.forward(0);
  for (uint32_t i = 0; i < r; ++i) {
    steps.forward(1);
    steps.forward(0);
  }
  auto turn_back = [&] {
    steps.forward(1);
    steps.backward(1);
    steps.weight(1);
  };
  for (uint32_t i = 0; i < p - r; ++i)
    turn_back();
  while (steps.forwards(1) < steps.forwards(0) || steps.forwards(0) < scheduled) {
    if (steps.forwards(0) < scheduled)
      steps.forward(0);
    steps.backward(0);
    steps.weight(0);
    turn_back();
  }
  for (uint32_t i = 0; i < r; ++i) {
    steps.backward(0);
    steps.backward(1);
  }
  for (uint32_t i = 0; i < p - r; ++i) {
    steps.backward(0);
    steps.weight(0);
  }
  for (uint32_t chunk : {1, 0})
    while (steps.owes(chunk))
      steps.weight(chunk);
  return steps.order();
}

strategy run_zero_bubble_v(rank& self, const model& m) {
  const auto shape = pipeline_mesh(m, self.world_size());
  auto order = zero_bubble_v_order(shape.pipeline, shape.stage(self.index()), pipeline_micro_batches(m, shape));
  return run_pipeline(self, m, {shape, std::move(order), 2, placement::vee});
}

caf::error check_zero_bubble_v(const model& m, uint32_t world_size) {
  RETURN_ERROR(check_mesh(m, world_size));
  auto shape = pipeline_mesh(m, world_size);
  return check_pipeline_of(m, shape, 2 * shape.pipeline);
}

} // namespace

const known_strategy zero_bubble_v{
  .name = "zb-v",
  .what = "zero-bubble ZB-V: two stages a rank, there and back; no gaps, 1F1B's memory",
  .run = run_zero_bubble_v,
  .check = check_zero_bubble_v,
  .shape = pipeline_mesh,
  .shares = sharing::stages,
  .chunks = chunk_use::there_and_back,
  .held = holds_one_a_stage};

} // namespace ringmaster::training
