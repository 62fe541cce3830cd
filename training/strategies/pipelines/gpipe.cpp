// GPipe (Huang et al. 2019): all forwards of the micro-batches, then all backwards. The paper runs the last
// micro-batch's backward first; here, as Megatron-LM draws it, the first one's, which takes as long and holds as much.
// With p stages and m micro-batches the bubble is (p-1)/(m+p-1) of the time; a stage holds the activations of all m.
#include "training/strategies/pipelines/pipeline.hpp"

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

strategy run_gpipe(rank& self, const model& m) {
  const auto shape = pipeline_mesh(m, self.world_size());
  const auto count = pipeline_micro_batches(m, shape);
  auto step = [count](uint32_t i) {
    return i < count ? pipeline_step{kind::forward, i} : pipeline_step{kind::backward, i - count};
  };
  return run_pipeline(self, m, {shape, {2 * count, step}});
}

} // namespace

const known_strategy gpipe{.name = "gpipe",
                           .what = "GPipe: all forwards, then all backwards",
                           .run = run_gpipe,
                           .check = check_pipeline,
                           .shape = pipeline_mesh,
                           .shares = sharing::stages,
                           .held = holds_all};

} // namespace ringmaster::training
