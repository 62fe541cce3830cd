// Data, tensor and pipeline parallel together (Narayanan et al., Megatron-LM, 2021): the world is a box of tensor x
// data x pipeline ranks; layers are shared along the first axis, samples along the second, stages along the third,
// in 1F1B's order.
// With a side of 1 it is a two-dimensional one. Where none is given, a side is 2 while the ranks can be halved,
// tensor first, and data is more where there would be more stages than layers.
// Time: the bubble of 1F1B over global batch / data micro-batches; the sides' collectives as by themselves.
// Memory: 3 / (tensor x pipeline) of the weights, and activations of at most p micro-batches, 1/p of the layers.
#include "runtime/training/strategies/pipelines/pipeline.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

model with_sides(model m, uint32_t world_size) {
  if (m.tensor == 0)
    m.tensor = world_size % (2 * std::max(m.data, 1u)) == 0 ? 2 : 1;
  return with_data(m, world_size);
}

strategy run_three_dimensional(rank& self, const model& m) {
  auto sides = with_sides(m, self.world_size());
  co_await one_forward_one_backward.run(self, sides);
}

mesh three_dimensional_shape(const model& m, uint32_t world_size) {
  return pipeline_mesh(with_sides(m, world_size), world_size);
}

caf::error check_three_dimensional(const model& m, uint32_t world_size) {
  return check_pipeline(with_sides(m, world_size), world_size);
}

} // namespace

const known_strategy three_dimensional{
  .name = "3d",
  .what = "tensor x data x pipeline parallel, 1F1B (--tensor, --data; the rest are stages)",
  .run = run_three_dimensional,
  .check = check_three_dimensional,
  .shape = three_dimensional_shape,
  .shares = sharing::stages,
  .held = holds_one_a_stage,
  .of_another = true};

} // namespace ringmaster::training
