#pragma once

#include "runtime/training/group.hpp"
#include "runtime/training/transformer/gpt.hpp"
#include "runtime/training/transformer/gpu_system.hpp"

namespace ringmaster::training {

enum class pipeline_schedule : uint8_t {
  all_forwards_first,
  one_f_one_b,
  interleaved_1f1b,
  zb_h1,
  zb_h2,
  zb_v,
  dualpipe
};

/// The strategy's name: gpipe, 1f1b, ...
std::string_view name_of(pipeline_schedule x);

/// How a model is trained.
struct parallel_setting {
  mesh shape;
  uint32_t global_batch = 1; ///< Samples; a multiple of micro_batch x shape.data.
  uint32_t micro_batch = 1;
  uint32_t chunks = 1; ///< Of interleaved.
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  recomputation again = recomputation::none;
  bool sequence_parallel = false;
  uint32_t zero = 0; ///< Stage.

  uint32_t micro_batches() const { return global_batch / (micro_batch * shape.data); }
};

/// A transformer layer and a micro-batch, on each of the ranks that share it. Seconds.
struct layer_times {
  double forward = 0;   ///< With its collectives; host and device together.
  double backward = 0;  ///< With its collectives, and with what is computed again.
  double exchange = 0;  ///< Of each of these, in the tensor-parallel group's collectives.
  double by_weight = 0; ///< The part of backward that is by the weights.
};

layer_times layer_times_of(const gpt& m, const gpu_system& on, const parallel_setting& how);
/// Of a micro-batch, the embedding on the first stage and the logits and the loss on the last one, forward and
/// backward.
struct end_times {
  double embedding = 0;
  double loss = 0;
};
end_times end_times_of(const gpt& m, const gpu_system& on, const parallel_setting& how);
/// An activation from a stage to the next.
double hop_time(const gpt& m, const gpu_system& on, const parallel_setting& how);
/// Of `bytes` over the group: a ring within a host, then among hosts.
double tensor_all_reduce_time(double bytes, uint32_t ranks, const gpu_system& on);
/// All gradients, of `parameters` on a rank, over the data-parallel ranks.
double gradient_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape);

/// Those of a layer or stage that two ranks of different stages have.
double mirror_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape);

struct iteration_estimate {
  double seconds = 0;
  double bubble = 0;        ///< Seconds of the pipeline's filling and draining.
  double communication = 0; ///< Seconds in tensor-parallel collectives, hops and gradients, of a rank.
  double memory_bytes = 0;  ///< Of the rank that holds the most, of the first and the last stage's.
  double mfu = 0;           ///< Model FLOPs utilization, a part.
};

/// Layers' worth of a micro-batch's activations that a rank of the first stage keeps: L under 1F1B, L (1 +
/// (p-1)/(pv)) interleaved.
double layers_kept_by_first(const gpt& m, const parallel_setting& how);

/// In closed form: the slowest stage's time for all micro-batches, the bubble, gradients and optimizer.
iteration_estimate estimate_iteration(const gpt& m, const gpu_system& on, const parallel_setting& how);
/// The same with the layer's and the ends' times known.
iteration_estimate estimate_iteration(const gpt& m, const gpu_system& on, const parallel_setting& how,
                                      const layer_times& layer, const end_times& ends);

} // namespace ringmaster::training
