#pragma once

#include "training/strategies/strategies.hpp"

#include <functional>

namespace ringmaster::training {

/// What a pipeline's schedule has a rank do next with one micro-batch.
struct pipeline_step {
  enum class kind : uint8_t { forward, backward, backward_input, backward_weight };

  kind what = kind::forward;
  uint32_t micro_batch = 0; ///< From 0, of the chunk's.
  uint32_t chunk = 0;       ///< Of the rank's parts of the model.
  bool with_next = false;   ///< A forward that is one block with the next step, a backward: its output goes on after
                            ///< that. If layers have experts, the two alternate.
};

/// Where the stages are, of p ranks with v chunks each.
enum class placement : uint8_t {
  loop,      ///< Rank r has r, r + p, r + 2p, ... of v p stages.
  vee,       ///< There and back: rank r has r and 2p-1-r of 2p stages.
  both_ways, ///< Each of p stages twice: rank r has r for the first half of the samples, p-1-r for the others.
};

/// The steps of one rank.
struct pipeline_order {
  uint32_t count = 0;
  std::function<pipeline_step(uint32_t)> step; ///< From 0 on.

  static pipeline_order listed(std::vector<pipeline_step> all);
};

struct pipeline_plan {
  mesh shape;
  pipeline_order order;
  uint32_t chunks = 1;
  placement where = placement::loop;
};

/// Of 1F1B's order, step i: `ahead` forwards, at most all, then alternately a forward and a backward, then the
/// remaining backwards.
pipeline_step one_forward_one_backward_step(uint32_t i, uint32_t ahead, uint32_t micro_batches);

/// A rank of a pipeline. Its data-parallel part of the global batch, in micro-batches, goes through stages of
/// contiguous layers: activations to the next stage, their gradients to the previous one. Layers may be shared by
/// tensor-parallel ranks. Gradients are summed over the data-parallel ranks in the end, or scattered as m.zero has
/// it, and every layer is updated.
strategy run_pipeline(rank& self, const model& m, pipeline_plan plan);

/// The world as a pipeline strategy sees it: m.tensor and m.data ranks, one where they are not given, share each stage.
mesh pipeline_mesh(const model& m, uint32_t world_size);
/// Where m.data is not given it is 2 if the ranks can be halved, or what leaves no more stages than layers.
model with_data(model m, uint32_t world_size);
// See `micro_batches_held`.
inline uint64_t holds_all(const model&, const mesh&, uint64_t count) {
  return count;
}
inline uint64_t holds_one_a_stage(const model&, const mesh& shape, uint64_t) {
  return shape.pipeline;
}
/// Micro-batches of a data-parallel rank.
uint32_t pipeline_micro_batches(const model& m, const mesh& shape);
caf::error check_pipeline(const model& m, uint32_t world_size);
/// The same for a rank with `stages` stages.
caf::error check_pipeline_of(const model& m, const mesh& shape, uint32_t stages);
/// Whether a stage's ranks can share positions and experts as m.context and m.experts have it, if there are any.
caf::error check_shared_layers(const model& m, const mesh& shape);

} // namespace ringmaster::training
