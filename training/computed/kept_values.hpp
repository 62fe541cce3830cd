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

/// For the number of a layer, where there is none.
inline constexpr uint32_t no_layer = UINT32_MAX;

/// What a rank keeps from one training step to the next: as it was before the step that is under way, and what that
/// step has made so far. So a step can be given up at any operation, and done again.
class kept_values {
public:
  using parts = std::map<kept_part, block_pointer>;

  /// Step `step` is about to run: it begins with what the step before it has made, or, when it runs once more, with
  /// what it began with, but for what came from elsewhere: other ranks may need other parts. Errors: invalid_argument,
  /// where neither is there.
  caf::error begin(uint64_t step);
  /// Of what the step begins with; null: it is not here.
  block_pointer find(const kept_part& what) const;
  /// What the step has made.
  void stage(const kept_part& what, block_pointer x) { staged_[what] = std::move(x); }
  /// What the step begins with comes from elsewhere.
  void restore(const kept_part& what, block_pointer x) { kept_[what] = restored_[what] = std::move(x); }
  /// What is kept lies elsewhere now.
  void replace(const kept_part& what, block_pointer x) { kept_[what] = std::move(x); }
  /// All of it does.
  void forget(uint64_t step);

  /// The step that begins with what is kept.
  uint64_t step() const { return step_; }
  const parts& kept() const { return kept_; }
  /// What the step that begins with it has made so far.
  const parts& made() const { return staged_; }

private:
  uint64_t step_ = 0;
  parts kept_, staged_, restored_; ///< The latter are among those that are kept.
};

} // namespace ringmaster::training
