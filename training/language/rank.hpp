#pragma once

#include "training/language/model.hpp"
#include "training/language/strategy.hpp"

namespace ringmaster::training {

/// One rank, as its strategy sees it: the operations of a training step. Every operation checks what it is given; a
/// wrong value ends the run with an error that names the rank, the operation and what was missing. Costs are the
/// executor's.
class rank {
public:
  rank(executor& on, uint32_t index, uint32_t world_size, const model& trained)
    : on_(&on), index_(index), world_size_(world_size), model_(&trained) {}

  uint32_t index() const { return index_; }
  uint32_t world_size() const { return world_size_; }
  group world() const { return {0, world_size_, 1}; }
  bool first() const { return index_ == 0; }
  bool last() const { return index_ + 1 == world_size_; }
  uint32_t next() const { return index_ + 1; }
  uint32_t previous() const { return index_ - 1; }

  /// A layer's weight and what the optimizer keeps for it, each a shard or whole; of a tensor shard, or of the layer.
  operation<weight, optimizer_state> load_weights(uint32_t layer, shard part, shard state_part, shard tensor = {});
  operation<weight, optimizer_state> load_weights(uint32_t layer, shard part = {}) {
    return load_weights(layer, part, part);
  }
  /// The part of a layer's experts of rank `experts.index` of `experts.count`. A forward with them takes, and makes, the positions
  /// that are for these: see `dispatch`.
  operation<weight, optimizer_state> load_experts(uint32_t layer, shard experts, shard state_part = {});
  /// The part of a layer, by the columns of its output, of rank `columns.index` of `columns.count`: a forward makes these,
  /// of the whole input, in place of a summand; a backward takes them of the gradient.
  operation<weight, optimizer_state> load_columns(uint32_t layer, shard columns);
  /// The first layer's input for some samples; takes no time.
  operation<activation> input(range samples);
  /// The output of x's layer, for which it takes the whole of both; with a tensor shard, whole of it, a summand of
  /// the output, or its columns.
  operation<activation> forward(const activation& x, const weight& w);
  /// What attention to x's positions, all or a sequence shard, needs of them: keys and values.
  operation<attention_keys> keys(const activation& x, const weight& w);
  /// What x's positions, a sequence shard, make of those of the keys, of one sequence shard or of all.
  operation<attention> attend(const activation& x, const attention_keys& to);
  /// The rest of the layer for x's positions, a sequence shard, which have attended to all keys: the shard of its
  /// output. Ends what attention has made.
  operation<activation> forward(const activation& x, const weight& w, attention made);
  /// The gradient of the model's output, for its samples, or for a sequence shard of them.
  operation<activation_gradient> loss(const activation& output);
  /// Gradients by the weight and by the input x of a layer, of that by its output.
  operation<weight_gradient, activation_gradient> backward(const activation& x, const weight& w,
                                                           const activation_gradient& by_output);
  /// Its halves: the gradient by the input, on which the layer before waits, and the one by the weight, on which
  /// no layer waits.
  operation<activation_gradient> backward_input(const activation& x, const weight& w,
                                                const activation_gradient& by_output);
  operation<weight_gradient> backward_weight(const activation& x, const weight& w,
                                             const activation_gradient& by_output);
  /// Of sequence shards: the gradient by the keys, from x's positions. Then the rest of a layer's backward, for which
  /// the gradient by x's own keys must be from all positions; it ends that.
  operation<keys_gradient> attend_backward(const activation& x, const attention_keys& to,
                                           const activation_gradient& by_output);
  operation<weight_gradient, activation_gradient> backward(const activation& x, const weight& w,
                                                           const activation_gradient& by_output, keys_gradient by_keys);
  /// sum += more; the same layer and shard, and no sample twice. An empty sum takes it as it is. No time.
  operation<> add(weight_gradient& sum, weight_gradient more);
  /// The same of attention, to other keys, or of gradients by keys, from other positions: runs side by side, as they
  /// go round in a ring.
  operation<> add(attention& sum, attention more) { return joined(sum, std::move(more)); }
  operation<> add(keys_gradient& sum, keys_gradient more) { return joined(sum, std::move(more)); }
  /// One shard of a whole gradient or weight; the rest of its memory is given back. No time.
  operation<weight_gradient> slice(weight_gradient x, shard part) { return sliced(std::move(x), part); }
  operation<weight> slice(weight x, shard part) { return sliced(std::move(x), part); }
  /// Of an activation or its gradient, a sequence shard.
  operation<activation> slice(activation x, shard part) { return sliced(std::move(x), part); }
  operation<activation_gradient> slice(activation_gradient x, shard part) { return sliced(std::move(x), part); }
  /// Of the gradient by a whole output, a column shard.
  operation<activation_gradient> slice_columns(activation_gradient x, shard part);
  /// One step of the optimizer, with the gradient of all samples of the global batch.
  operation<> update(weight& w, optimizer_state& state, weight_gradient gradient);
  /// The rank's share of the result: weights at step 1. All ranks' together must be the whole model. No time.
  operation<> finish(weight w);

  /// The sum over the group's ranks: of gradients by weights, each of other samples; of an activation's or its
  /// gradient's summands, all of them. Of gradients by weights that tensor-parallel ranks share, where they are
  /// summands: of the parameters that all of them have, the others stay as they are.
  template <class Value>
  operation<Value> all_reduce(Value x, group among) {
    return together(op::all_reduce, std::move(x), among);
  }
  operation<weight_gradient> all_reduce(weight_gradient x) { return all_reduce(std::move(x), world()); }
  /// The rank's shard of that sum: the group's rank i has shard i of the group's size; of an activation's a sequence
  /// shard, or of what is one its part i; of gradients by all keys, that by its own.
  template <class Value>
  operation<Value> reduce_scatter(Value x, group among) {
    return together(op::reduce_scatter, std::move(x), among);
  }
  operation<weight_gradient> reduce_scatter(weight_gradient x) { return reduce_scatter(std::move(x), world()); }
  /// The same of the summands of an activation's gradient, of which the rank gets a column shard.
  operation<activation_gradient> reduce_scatter_columns(activation_gradient x, group among);
  /// The whole of all ranks' shards: of a weight, or of the sequence or column shards of an activation or its gradient.
  /// Where sequence shards are all of a larger one, that.
  template <class Value>
  operation<Value> all_gather(const Value& part, group among) {
    return shown(op::all_gather, part, among, 0);
  }
  operation<weight> all_gather(const weight& part) { return all_gather(part, world()); }
  /// A column shard, of heads, for a sequence shard, or the other way round (Jacobs et al., DeepSpeed Ulysses, 2023).
  template <class Value>
  operation<Value> all_to_all(Value x, group among) {
    return together(op::all_to_all, std::move(x), among);
  }
  /// Whole activations of other samples each, or sequence shards side by side: the group's rank i gets all ranks'
  /// positions that are for its experts (Lepikhin et al., GShard, 2020).
  template <class Value>
  operation<Value> dispatch(Value x, group among) {
    auto result = together(op::all_to_all, std::move(x), among);
    require_positions(result);
    result.work_.results[0].has = form::experts;
    return result;
  }
  /// And back: what experts have made of a rank's samples, or of a sequence shard of them. It says which; together they
  /// are all.
  template <class Value>
  operation<Value> combine(Value x, range samples, group among, shard positions = {}) {
    auto result = together(op::all_to_all, std::move(x), among);
    require_experts(result);
    require_samples(result, samples);
    auto& asked = result.work_.results[0];
    asked.samples = range_set{samples};
    asked.part = positions;
    asked.has = positions.whole() ? form::whole : form::sequence;
    return result;
  }
  /// A copy of what the root, a rank of the group, has; the others show nothing.
  template <class Value>
  operation<Value> broadcast(const Value& x, uint32_t root, group among) {
    return shown(op::broadcast, x, among, root);
  }

  /// To the host's memory and back: what is there takes none of the device's, and cannot be worked with.
  template <class Value>
  operation<Value> offload(Value x) {
    return moved(op::offload, std::move(x));
  }
  template <class Value>
  operation<Value> fetch(Value x) {
    return moved(op::fetch, std::move(x));
  }

  /// Begins x on the rank's second stream, beside what it does meanwhile; co_await the handle for its results. What it
  /// only reads is copied: the copy takes its memory until then.
  template <class... Values>
  handle<Values...> aside(operation<Values...> x) {
    return handle<Values...>{std::move(x)};
  }

  /// A copy of x for the other rank. Never waits for it. What is sent aside is received aside, and nothing else.
  operation<> send(uint32_t to, const value& x);
  /// The next Value that `from` has sent; values of each kind come in the order in which they were sent.
  template <class Value>
  operation<Value> receive(uint32_t from) {
    auto result = start<Value>(op::receive);
    result.work_.peer = from;
    result.work_.argument.kind = Value::kind;
    require_other_rank(result, from);
    return result;
  }

private:
  // Operations are made where they are awaited, and never copied: there are millions.
  template <class... Values>
  operation<Values...> start(op what) const {
    return {*on_, what, index_};
  }
  /// A backward, or a half of it: Values are the gradients it gives.
  template <class... Values>
  operation<Values...> gradients(op what, const activation& x, const weight& w,
                                 const activation_gradient& by_output) const;
  template <class Value>
  operation<Value> sliced(Value x, shard part);
  template <class Value>
  operation<> joined(Value& sum, Value more);
  template <class Value>
  operation<Value> together(op what, Value x, group among) {
    auto result = start<Value>(what);
    result.work_.among = among;
    result.work_.argument = x.tag();
    result.work_.memory[0] = x.memory_.token();
    require_member(result, x);
    result.work_.consumed = std::move(x.memory_);
    return result;
  }
  template <class Value>
  operation<Value> shown(op what, const Value& x, group among, uint32_t root) {
    auto result = start<Value>(what);
    result.work_.among = among;
    result.work_.peer = root;
    result.work_.argument = x.tag();
    result.work_.argument.kind = Value::kind; // where it shows nothing, too
    result.work_.memory[0] = x.memory_.token();
    require_member(result, x);
    return result;
  }
  template <class Value>
  operation<Value> moved(op what, Value x) {
    auto result = start<Value>(what);
    auto& work = result.work_;
    work.argument = work.results[0] = x.tag();
    work.results[0].on_host = what == op::offload;
    work.memory[0] = x.memory_.token();
    result.require(is_there(work, x), [&] { return not_there(x); });
    work.consumed = std::move(x.memory_);
    return result;
  }
  // Predicates of arguments, the text for each that does not hold, and what refuses the operation then.

  /// Whether the rank can use the value: it is the rank's own, and on the device.
  bool usable(const value& x) const { return x.memory_.belongs_to(on_, index_) && !x.tag().on_host; }
  std::string unusable(const value& x, const char* name) const;
  template <class... Values>
  void require_usable(operation<Values...>& its, const value& x, const char* name) const {
    its.require(usable(x), [&] { return unusable(x, name); });
  }
  /// Whether the value is usable and whole.
  bool ready(const value& x) const;
  bool fits(const activation& x, const weight& w) const;
  bool for_experts(const weight& w, std::initializer_list<const value*> others) const;
  /// Whether it is by all of the output that the weight makes, or by the columns of it.
  bool by_output_of(const weight& w, const activation_gradient& by_output) const;
  /// The keys, of one sequence shard or of all, go with x, a sequence shard.
  template <class... Values>
  void require_attention(operation<Values...>& its, const activation& x, const attention_keys& to) const;
  /// The gradient is by the output of x's layer, for x's sequence shard.
  template <class... Values>
  void require_by_output(operation<Values...>& its, const activation& x, const activation_gradient& by_output) const;
  template <class Value>
  static void require_positions(operation<Value>& its) {
    its.require(has_positions(its.work_.argument), [&] { return not_of_positions(its.work_.argument); });
  }
  static bool has_positions(const value_tag& x);
  static std::string not_of_positions(const value_tag& x);
  template <class Value>
  static void require_experts(operation<Value>& its) {
    its.require(its.work_.argument.has == form::experts, [&] { return not_of_experts(its.work_.argument); });
  }
  static std::string not_of_experts(const value_tag& x);
  template <class Value>
  void require_samples(operation<Value>& its, range samples) const {
    its.require(samples.begin < samples.end && samples.end <= model_->global_batch,
                [&] { return no_samples(samples); });
  }
  std::string no_samples(range samples) const;
  template <class... Values>
  void require_other_rank(operation<Values...>& its, uint32_t peer) const {
    its.require(peer < world_size_ && peer != index_, [&] { return no_other_rank(peer); });
  }
  std::string no_other_rank(uint32_t peer) const;
  /// The arguments of a backward go together.
  template <class... Values>
  void require_match(operation<Values...>& its, const activation& x, const weight& w,
                     const activation_gradient& by_output) const;
  /// Both are of the same part of the model, and at the same step.
  template <class... Values>
  void require_fit(operation<Values...>& its, const value& base, const value& other) const;
  /// A collective's group exists, this rank is in it, and has an argument that it can use.
  template <class Value>
  void require_member(operation<Value>& its, const value& argument) const {
    its.require(is_member(its.work_, argument), [&] { return no_member(its.work_, argument); });
  }
  bool is_member(const pending& x, const value& argument) const {
    const auto& among = x.among;
    return among.count != 0 && among.stride != 0 && among.last() < world_size_ && among.contains(index_)
           && (x.what != op::broadcast || among.contains(x.peer))
           && ((x.what == op::broadcast && x.peer != index_) || usable(argument));
  }
  std::string no_member(const pending& x, const value& argument) const;
  /// Whether a value that is to be moved is the rank's own, and lies on the other side.
  bool is_there(const pending& x, const value& argument) const {
    return argument.memory_.belongs_to(on_, index_) && argument.tag().on_host == (x.what == op::fetch);
  }
  std::string not_there(const value& argument) const;

  executor* on_;
  uint32_t index_;
  uint32_t world_size_;
  const model* model_;
};

} // namespace ringmaster::training
