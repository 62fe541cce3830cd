#pragma once

#include "training/language/turns.hpp"
#include "training/strategies/key_exchange.hpp"
#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

/// What a rank of a stage shares with others, layer by layer. Columns and rows with its tensor-parallel ranks: each
/// makes a summand of the output. Positions with its context-parallel ranks: keys go around them. Experts of every
/// second layer with its neighbours in the stage, along any axes: positions go to them and come back. Between
/// layers it has the positions of its place among the context's ranks, or, sequence parallel, among the tensor-parallel
/// ones, too. While positions are on their way to experts or back, another part of the strategy has its turn, if any.
class layer_sharing {
public:
  layer_sharing(rank& self, const model& m, const mesh& shape, turns& by_turns);

  bool any() const { return columns() || positions() || has_experts(); }
  bool columns() const { return tensor_.count > 1; }
  bool positions() const { return context_.count > 1; }
  bool has_experts() const { return model_.experts > 1; }
  bool of_experts(uint64_t layer) const { return has_experts() && is_of_experts(model_, layer); }
  bool in_sequence() const { return columns() && model_.sequence_parallel; }

  operation<weight, optimizer_state> load_experts(uint32_t layer, shard state_part);
  /// All that have the same experts.
  const group& same_experts() const { return same_experts_; }
  /// Its positions of the first layer's input.
  task<activation> own_positions(activation whole);
  /// x is what the layer's backward takes, and may change on the way; so are `keys`.
  task<activation> forward(activation& x, const weight& w, attention_keys& keys);
  struct gradients {
    weight_gradient by_weight;
    activation_gradient by_input; ///< To be completed.
    range samples;                ///< That experts have made it of, of this rank's.
    shard positions;
  };
  /// Or a half of it, where no positions are shared. It may use up the gradient by the output; the half by the input
  /// leaves what the one by the weight takes.
  task<gradients> backward(op what, const activation& x, const weight& w, attention_keys& keys,
                           activation_gradient& by_output);
  /// The gradient by the rank's own input, of what it and the others have made of it. Later, so that the one by the
  /// weight needs no room meanwhile.
  task<activation_gradient> completed(gradients made);
  task<activation_gradient> loss(activation output);
  /// Over the tensor-parallel ranks, of what all of these have.
  task<weight_gradient> sum_replicated(weight_gradient x);

private:
  task<activation> through_experts(activation& x, const weight& w);
  task<gradients> back_through_experts(op what, const activation& x, const weight& w, activation_gradient& by_output);
  task<gradients> gradients_of(op what, const activation& x, const weight& w, const activation_gradient& by_output);
  template <class Value>
  task<Value> beside_another(operation<Value> way);
  template <class Value>
  task<Value> brought_back(Value x, range samples, shard positions);

  shard tensor_shard() const { return {tensor_.index_of(self_.index()), tensor_.count}; }

  rank& self_;
  const model& model_;
  turns& turns_;
  group tensor_, context_, experts_, same_experts_;
  key_exchange exchange_;
};

} // namespace ringmaster::training
