#pragma once

#include "training/language/executor.hpp"
#include "training/layers/layer.hpp"
#include "training/layers/optimizer.hpp"
#include "training/strategies/strategies.hpp"

#include <caf/expected.hpp>

#include <memory>

namespace ringmaster::training {

/// Where samples come from. Thread-safe; the same answer whoever asks, and whenever.
class batch_source {
public:
  virtual ~batch_source() = default;

  /// Of step `step`'s global batch, counted from 0, these samples: an input each of as many elements as the first layer
  /// takes, and `labels_each` labels. Either may be empty: it is not wanted. Errors: as a data set's, which end the
  /// run.
  virtual caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const = 0;
};

/// What is trained, and how; all ranks have the same one.
struct training_job {
  model shape; ///< As the strategy sees it.
  /// The micro-batch follows from the ranks that run a step, in place of shape.micro_batch (step_shape): all samples of
  /// a rank at once, or in a pipeline such that there are four micro-batches a stage or more. So ranks that are left
  /// when another one is lost cut the batch as a run that starts with them does.
  bool all_at_once = false;
  const known_strategy* strategy = nullptr;
  precision as = precision::float32;
  model_layers layers;
  optimizer update;
  uint64_t seed = 0; ///< Of the first weights.
  std::shared_ptr<const batch_source> data;

  /// Of a sample: one, or as many as it has positions.
  uint32_t labels_each = 1;

  uint64_t classes() const { return layers.back()->outputs() / labels_each; }
};

/// The layers, as this strategy's ranks share them. Errors: invalid_argument, naming one that cannot be cut so.
caf::expected<model_layers> layers_for(const known_strategy& which, model_layers layers);

/// Elements of a value's whole, on a tensor-parallel rank: of which it may be a shard.
uint64_t whole_elements(const training_job& job, const value_tag& x);
/// Elements of a value. Shards are all as long, the last one's end is padding.
uint64_t elements(const training_job& job, const value_tag& x);

/// Of a collective's value, what each of its ranks has where it is scattered, and the whole that comes of gathering it.
value_tag scattered(const pending& x);
value_tag gathered(const pending& x);
/// Elements that a communication has of a rank, as collectives count them.
uint64_t count_of(const training_job& job, const pending& x);

/// A run of elements of a layer's parameters that lie one behind the other both on a rank and in the whole layer.
struct parameter_run {
  uint32_t parameter = 0;
  uint64_t local = 0;  ///< From the beginning of what the rank has.
  uint64_t global = 0; ///< From the beginning of the parameter.
  uint64_t count = 0;
};

/// What of a layer a rank has, which has shard `part` of the tensor shard's parameters; padding is in none of them.
std::vector<parameter_run> parameter_runs(const layer& of, shard tensor, shard part);

/// A layer's first weights: each element depends on the seed and its place in the model only, so ranks need not tell
/// each other.
void set_first_weights(const training_job& job, uint32_t layer, shard tensor, shard part, std::byte* w);

/// Step `number`, from 1 on, of what `what` says of a layer's weight: the optimizer's for parameters, for statistics
/// their own; from what there was to `w` and a state of the same shard, which may be the same memory.
void update_weights(const training_job& job, const value_tag& what, uint64_t number, optimizer::before from,
                    std::byte* w, std::byte* state, const std::byte* gradient);

} // namespace ringmaster::training
