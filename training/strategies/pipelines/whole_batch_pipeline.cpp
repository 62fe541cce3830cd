// A pipeline without micro-batches: the layers are cut into as many stages as there are ranks, and the global batch
// goes through them as one. Only one stage works at a time.
// Time: load + forward and backward of all layers + 2 (p-1) hops. Memory: 3/p of the weights, activations of the
// whole batch.
#include "training/strategies/pipelines/pipeline.hpp"

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run_whole_batch_pipeline(rank& self, const model& m) {
  auto whole = m;
  whole.micro_batch = m.global_batch;
  auto there_and_back = [](uint32_t i) { return pipeline_step{i == 0 ? kind::forward : kind::backward}; };
  co_await run_pipeline(self, whole, {pipeline_mesh(m, self.world_size()), {2, there_and_back}});
}

} // namespace

const known_strategy whole_batch_pipeline{.name = "pipeline",
                                          .what = "a stage a rank, the whole batch at once",
                                          .run = run_whole_batch_pipeline,
                                          .check = check_pipeline,
                                          .shape = pipeline_mesh,
                                          .shares = sharing::stages,
                                          .cut = batch_cut::never};

} // namespace ringmaster::training
