#pragma once

#include "runtime/training/strategy.hpp"

namespace ringmaster::training {

/// What is trained, in one step.
struct model {
  uint32_t layers = 1;
  uint64_t global_batch = 1; ///< Samples of a step, of all ranks.
  uint64_t micro_batch = 1;  ///< Samples that a rank works on at once.
  uint32_t chunks = 2;       ///< Parts of the model that a rank has in interleaved pipelines.
};

/// One rank, as its strategy sees it: the operations of a training step. Every operation checks what it is given; a wrong
/// value ends the run with an error that names the rank, the operation and what was missing. Costs are the executor's.
class rank {
public:
  rank(executor& on, uint32_t index, uint32_t world_size, const model& trained)
    : on_(&on), index_(index), world_size_(world_size), model_(&trained) {}

  uint32_t index() const { return index_; }
  uint32_t world_size() const { return world_size_; }
  bool first() const { return index_ == 0; }
  bool last() const { return index_ + 1 == world_size_; }
  uint32_t next() const { return index_ + 1; }
  uint32_t previous() const { return index_ - 1; }

  /// A layer's weight and what the optimizer keeps for it, each a shard or whole.
  operation<weight, optimizer_state> load_weights(uint32_t layer, shard part, shard state_part);
  operation<weight, optimizer_state> load_weights(uint32_t layer, shard part = {}) { return load_weights(layer, part, part); }
  /// The first layer's input for some samples; takes no time.
  operation<activation> input(range samples);
  /// The output of x's layer, whose whole weight it takes.
  operation<activation> forward(const activation& x, const weight& w);
  /// The gradient of the model's output, for its samples.
  operation<activation_gradient> loss(const activation& output);
  /// Gradients by the weight and by the input x of a layer, of that by its output.
  operation<weight_gradient, activation_gradient> backward(const activation& x, const weight& w, const activation_gradient& by_output);
  /// Its halves: the gradient by the input, on which the layer before waits, and the one by the weight, on which nobody does.
  operation<activation_gradient> backward_input(const activation& x, const weight& w, const activation_gradient& by_output);
  operation<weight_gradient> backward_weight(const activation& x, const weight& w, const activation_gradient& by_output);
  /// sum += more; the same layer and shard, and no sample twice. An empty sum takes it as it is. No time.
  operation<> add(weight_gradient& sum, weight_gradient more);
  /// One shard of a whole gradient or weight; the rest of its memory is given back. No time.
  operation<weight_gradient> slice(weight_gradient x, shard part) { return sliced(std::move(x), part); }
  operation<weight> slice(weight x, shard part) { return sliced(std::move(x), part); }
  /// One step of the optimizer, with the gradient of all samples of the global batch.
  operation<> update(weight& w, optimizer_state& state, weight_gradient gradient);
  /// The rank's share of the result: weights at step 1. All ranks' together must be the whole model. No time.
  operation<> finish(weight w);

  /// The sum over all ranks, each of which has other samples.
  operation<weight_gradient> all_reduce(weight_gradient x);
  /// Of that sum the rank's shard: rank r has r of as many as there are ranks.
  operation<weight_gradient> reduce_scatter(weight_gradient x);
  /// The whole weight of all ranks' shards.
  operation<weight> all_gather(const weight& part);
  /// A copy of x for the other rank. Never waits for it.
  operation<> send(uint32_t to, const value& x);
  /// The next Value that `from` has sent; values of each kind come in the order in which they were sent.
  template <class Value>
  operation<Value> receive(uint32_t from) {
    return {*on_, receiving(from, Value::kind), no_rank(op::receive, from)};
  }

private:
  pending start(op what) const;
  template <class Value>
  operation<Value> sliced(Value x, shard part);
  /// What is wrong with a backward's arguments.
  std::string mismatch(const activation& x, const weight& w, const activation_gradient& by_output) const;
  pending receiving(uint32_t from, value_kind kind) const;
  std::string no_rank(op what, uint32_t peer) const;
  std::string refusal(op what, std::string_view why) const;

  executor* on_;
  uint32_t index_;
  uint32_t world_size_;
  const model* model_;
};

} // namespace ringmaster::training
