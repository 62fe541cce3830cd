#pragma once

#include "training/language/range_set.hpp"

#include <utility>

namespace ringmaster::training {

class executor;

/// A part of a layer's weight, and of what belongs to it: shard `index` of `count`.
struct shard {
  uint32_t index = 0;
  uint32_t count = 1;

  bool whole() const { return count == 1; }
  friend bool operator==(const shard&, const shard&) = default;
};

/// The same in half the room: of a layer's columns or rows, which few ranks share.
struct narrow_shard {
  static constexpr uint32_t count_max = UINT16_MAX;

  uint16_t index = 0;
  uint16_t count = 1;

  narrow_shard() = default;
  narrow_shard(uint32_t of_index, uint32_t of_count)
    : index(static_cast<uint16_t>(of_index)), count(static_cast<uint16_t>(of_count)) {}
  narrow_shard(shard x) : narrow_shard(x.index, x.count) {}
  operator shard() const { return {index, count}; }

  bool whole() const { return count == 1; }
  friend bool operator==(const narrow_shard&, const narrow_shard&) = default;
  friend bool operator==(const narrow_shard& a, const shard& b) { return a.index == b.index && a.count == b.count; }
};

/// A run of the parts that a sample's positions are cut in, around: `count` of `of`, from part `first` on.
struct position_run {
  static constexpr uint32_t of_max = 1024;

  uint32_t first = 0;
  uint32_t count = 1;
  uint32_t of = 1;

  bool all() const { return count == of; }
  friend bool operator==(const position_run&, const position_run&) = default;
};

/// Both, where one goes on where the other ends; false, and nothing changes, where they share a part or none is
/// between. All positions are a run of one part of one.
bool join(position_run& a, const position_run& b);

enum class value_kind : uint8_t {
  none,
  weight,
  optimizer_state,
  activation,
  activation_gradient,
  weight_gradient,
  attention_keys,
  attention,
  keys_gradient
};

/// Of samples and their positions: an activation, what attention makes of one, or a gradient by these.
constexpr bool of_activation(value_kind x) {
  return x == value_kind::activation || x == value_kind::activation_gradient || x >= value_kind::attention_keys;
}

/// Of positions that attention looks at.
constexpr bool of_keys(value_kind x) {
  return x == value_kind::attention_keys || x == value_kind::keys_gradient;
}

/// How much of an activation, or of its gradient, a rank has.
enum class form : uint8_t {
  whole,
  summand,  ///< One of `tensor.count` that add up to it, or to a part of its positions: what a layer's tensor shard
            ///< makes. Of a weight's gradient: what all of the layer's tensor shards have of it is one of as many.
  sequence, ///< A part of the positions of each sample. Shard i of n of shard j of m is i + n j of n m.
  columns,  ///< A part of the hidden size, all positions: a block of the last axis. Of a weight and what belongs to it:
            ///< `tensor` says which columns of the layer's output they make, in place of a summand of it.
  experts, ///< The positions that are for the experts of one of `part.count` ranks. Of a weight and what belongs to it:
           ///< `tensor` says whose experts of the layer they are.
};

/// What a value is of. Layers are counted from 0, samples within the global batch.
struct value_tag {
  value_kind kind = value_kind::none;
  form has : 7 = form::whole; ///< Of activations and their gradients; of others see `summand` and `experts`.
  bool on_host : 1 = false;   ///< Off-loaded: to be fetched before it is used.
  uint16_t step = 0;          ///< Of weights and optimizer states: updates so far.
  uint32_t layer = 0;
  shard part{}; ///< Of these and of weight gradients, sharded over data-parallel ranks; of activations as `has` says.
  narrow_shard tensor{}; ///< Of weights, what belongs to them, attention and summands: the columns or rows that a
                         ///< tensor-parallel rank has.
  uint32_t run = 0;      ///< See `positions`. A value fits a line of the cache.
  range_set samples{};   ///< Of activations and gradients.

  /// Of a weight's gradient: by which positions; of attention: to which keys; of keys' gradients: from which positions;
  /// of what is for experts: which of the samples' positions have been sent there.
  position_run positions() const {
    return {run % position_run::of_max, run / position_run::of_max % position_run::of_max + 1,
            run / position_run::of_max / position_run::of_max + 1};
  }
  void set_positions(const position_run& x) {
    run = ((x.of - 1) * position_run::of_max + x.count - 1) * position_run::of_max + x.first;
  }
};

/// The positions that a value is of.
inline position_run positions_of(const value_tag& x) {
  return x.has == form::sequence ? position_run{x.part.index, 1, x.part.count} : x.positions();
}

/// "an activation".
std::string text_of(value_kind x);
/// "positions 1 to 2 of 4", "all positions".
std::string text_of(const position_run& x);
/// "gradient by the weight of layer 3, samples 0-3".
std::string text_of(const value_tag& x);

namespace detail {

/// How often this thread has given memory back or begun an operation: what changes an operation's arguments.
inline thread_local uint64_t changes = 0;

} // namespace detail

/// Memory that an executor has given a rank, and gets back when this goes.
class storage {
public:
  storage() = default;
  storage(executor* owner, uint32_t rank, uint64_t token) : owner_(owner), token_(token), rank_(rank) {}
  storage(storage&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), token_(other.token_), rank_(other.rank_) {}
  storage& operator=(storage&& other) noexcept {
    if (owner_ != nullptr)
      give_back();
    owner_ = std::exchange(other.owner_, nullptr);
    token_ = other.token_;
    rank_ = other.rank_;
    return *this;
  }
  ~storage() {
    if (owner_ != nullptr)
      give_back();
  }

  explicit operator bool() const { return owner_ != nullptr; }
  uint64_t token() const { return token_; }
  bool belongs_to(const executor* owner, uint32_t rank) const { return owner_ == owner && rank_ == rank; }

private:
  void give_back() noexcept;

  executor* owner_ = nullptr;
  uint64_t token_ = 0;
  uint32_t rank_ = 0;
};

/// What ranks compute with: a handle whose lifetime is its memory, and ends before its executor's. Only operations of a
/// `rank` make valid ones, so none can be forged; each knows what it is of.
class value {
public:
  const value_tag& tag() const { return tag_; }
  uint32_t layer() const { return tag_.layer; }
  bool valid() const { return static_cast<bool>(memory_); }
  /// Gives the memory back at once.
  void drop() { memory_ = {}; }

protected: // a value of one kind is no other's
  value() = default;
  value(value&&) = default;
  value& operator=(value&&) = default;
  ~value() = default;

private:
  template <class...>
  friend class operation;
  friend class rank;

  value(value_tag&& tag, storage memory) : tag_(std::move(tag)), memory_(std::move(memory)) {}

  value_tag tag_;
  storage memory_;
};

template <value_kind Kind>
class value_of : public value {
public:
  static constexpr auto kind = Kind;

  using value::value;
  value_of() = default;
  value_of(value_of&&) = default;
  value_of& operator=(value_of&&) = default;
};

/// The parameters of a layer, or a shard of them.
using weight = value_of<value_kind::weight>;
/// What an optimizer keeps for a weight, or for a shard of it.
using optimizer_state = value_of<value_kind::optimizer_state>;
/// The input of a layer, for some samples; that after the last layer is the model's output.
using activation = value_of<value_kind::activation>;
/// The loss's gradient by an activation.
using activation_gradient = value_of<value_kind::activation_gradient>;
/// Keys and values of a layer's input: what attention to these positions needs.
using attention_keys = value_of<value_kind::attention_keys>;
/// What attention has made of positions, by some or all of the keys.
using attention = value_of<value_kind::attention>;
/// The loss's gradient by keys and values, from some or all of the positions that have attended to them.
using keys_gradient = value_of<value_kind::keys_gradient>;
/// The loss's gradient by a layer's weight, or by a shard of it, summed over some samples.
using weight_gradient = value_of<value_kind::weight_gradient>;

} // namespace ringmaster::training
