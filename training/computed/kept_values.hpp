#pragma once

#include "training/computed/value_store.hpp"

#include <map>
#include <tuple>

namespace ringmaster::training {

/// A part of the model, or of what the optimizer keeps for it.
struct kept_part {
  value_kind kind{};
  uint32_t layer = 0;
  shard part{};
  shard tensor{};

  friend bool operator<(const kept_part& a, const kept_part& b) { return a.sorted_by() < b.sorted_by(); }
  bool operator==(const kept_part&) const = default;
  std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, value_kind> sorted_by() const {
    return {layer, tensor.count, tensor.index, part.count, part.index, kind};
  }
};

inline kept_part part_of(const value_tag& x) {
  return {x.kind, x.layer, x.part, x.tensor};
}

inline value_tag tag_of(const kept_part& x) {
  return value_tag{.kind = x.kind, .layer = x.layer, .part = x.part, .tensor = x.tensor};
}

/// In place of a layer's number: no layer.
inline constexpr uint32_t no_layer = UINT32_MAX;

/// What a rank keeps from one training step to the next: its parts of the model as they were before the step under way,
/// and what that step has made so far. So a step can be given up at any operation, and repeated.
class kept_values {
public:
  using parts = std::map<kept_part, block_pointer>;

  /// Step `step` is about to run. It starts with what the step before it has made. A step that is repeated starts with
  /// what it started with before, without parts that came from other ranks: other ranks may need other parts. Errors:
  /// invalid_argument, if neither is available.
  caf::error begin(uint64_t step);
  /// A part that the step starts with; null: this rank does not have it.
  block_pointer find(const kept_part& what) const;
  /// The step has made this part.
  void stage(const kept_part& what, block_pointer x);
  /// A part that the step starts with came from another rank or the host, or is a first weight.
  void restore(const kept_part& what, block_pointer x);
  /// A part that is kept has moved to another block; null: it is about to.
  void replace(const kept_part& what, block_pointer x);
  /// All parts that this step starts with will come from elsewhere.
  void forget(uint64_t step);

  /// The step that starts with what is kept.
  uint64_t step() const { return step_; }
  const parts& kept() const { return kept_; }
  /// What that step has made so far.
  const parts& made() const { return staged_; }

private:
  /// What holds when a step starts.
  void check() const;

  uint64_t step_ = 0;
  parts kept_, staged_, restored_; ///< `restored_` is a subset of `kept_`.
};

} // namespace ringmaster::training
