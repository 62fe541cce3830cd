#pragma once

#include "training/language/executor.hpp"
#include "training/layers/layer.hpp"
#include "training/layers/optimizer.hpp"
#include "training/strategies/strategies.hpp"

#include <caf/expected.hpp>

#include <memory>

namespace ringmaster::training {

/// Where samples come from. Thread-safe. The same call always gives the same samples.
class batch_source {
public:
  virtual ~batch_source() = default;

  /// These samples of the global batch of step `step`, both counted from 0. Each has an input of as many elements as
  /// the first layer takes, and `labels_each` labels. A span that is empty is not filled. Errors: those of a data set;
  /// they end the run.
  virtual caf::error fill(uint64_t step, range samples, std::span<float> inputs, std::span<uint32_t> labels) const = 0;
};

/// What is trained, and how. The same for all ranks.
struct training_job {
  model shape; ///< As the strategy sees it.
  /// The micro-batch follows from the number of ranks, and shape.micro_batch is ignored (see step_shape): it is all
  /// samples of a rank, or in a pipeline such that there are at least four micro-batches a stage. So after the loss of
  /// a rank the others cut the batch as a run that starts with them does.
  bool all_at_once = false;
  const known_strategy* strategy = nullptr;
  precision as = precision::float32;
  model_layers layers;
  optimizer update;
  uint64_t seed = 0; ///< Of the first weights.
  std::shared_ptr<const batch_source> data;

  /// Labels of a sample: 1, or one for each position.
  uint32_t labels_each = 1;

  uint64_t classes() const { return layers.back()->outputs() / labels_each; }
};

/// The layers, cut as this strategy shares them. Errors: invalid_argument, with a layer that cannot be cut like that.
caf::expected<model_layers> layers_for(const known_strategy& which, model_layers layers);

/// Elements of the whole, on a tensor-parallel rank, of which this value may be a shard.
uint64_t whole_elements(const training_job& job, const value_tag& x);
/// Elements of a value. All shards have the same length; the last one may end in padding.
uint64_t elements(const training_job& job, const value_tag& x);

/// The part of a collective's value that each rank has when it is scattered; the whole when it is gathered.
value_tag scattered(const pending& x);
value_tag gathered(const pending& x);
/// Elements of a rank in a communication, as collectives count them.
uint64_t count_of(const training_job& job, const pending& x);

/// A run of elements of a layer's parameters that is contiguous both on a rank and in the whole layer.
struct parameter_run {
  uint32_t parameter = 0;
  uint64_t local = 0;  ///< From the start of the rank's part.
  uint64_t global = 0; ///< From the start of the parameter.
  uint64_t count = 0;
};

/// The elements of a layer on a rank with shard `part` of the tensor shard's parameters, without padding.
std::vector<parameter_run> parameter_runs(const layer& of, shard tensor, shard part);

/// A layer's first weights. Each element depends only on the seed and its place in the model, so ranks need not
/// exchange them.
void set_first_weights(const training_job& job, uint32_t layer, shard tensor, shard part, std::byte* w);

/// Step `number`, counted from 1, for a layer's weight: the optimizer's for parameters; statistics have their own.
/// Reads `from`, writes `w` and a state of the same shard, which may be the same memory.
void update_weights(const training_job& job, const value_tag& what, uint64_t number, optimizer::before from,
                    std::byte* w, std::byte* state, const std::byte* gradient);

} // namespace ringmaster::training
