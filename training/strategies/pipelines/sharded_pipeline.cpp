// Pipeline with FSDP: the ranks of a stage are data parallel and share its weights, gradients and optimizer states,
// as with ZeRO stage 3. A layer is gathered for each micro-batch's forward and backward; its gradient is summed and
// scattered after each backward. In GPipe's order. Where --data is not given it is 2 if the ranks can be
// halved, or what leaves no more stages than layers.
// Time: GPipe's, and for each micro-batch and layer 2 all_gathers and a reduce_scatter among a stage's ranks.
// Memory: 3 / (p d) of the weights, one whole layer and gradient, activations of all micro-batches, 1/p of the layers.
#include "training/strategies/pipelines/pipeline.hpp"

namespace ringmaster::training {

namespace {

strategy run_sharded_pipeline(rank& self, const model& m) {
  auto mine = with_data(m, self.world_size());
  mine.parallel.zero = 3;
  co_await gpipe.run(self, mine);
}

mesh sharded_pipeline_shape(const model& m, uint32_t world_size) {
  return pipeline_mesh(with_data(m, world_size), world_size);
}

caf::error check_sharded_pipeline(const model& m, uint32_t world_size) {
  return check_pipeline(with_data(m, world_size), world_size);
}

} // namespace

const known_strategy sharded_pipeline{.name = "pipeline-fsdp",
                                      .what = "GPipe whose stages are each sharded over data-parallel ranks",
                                      .run = run_sharded_pipeline,
                                      .check = check_sharded_pipeline,
                                      .shape = sharded_pipeline_shape,
                                      .shares = sharing::stages,
                                      .gathers = sharded::a_stage,
                                      .held = holds_all};

} // namespace ringmaster::training
