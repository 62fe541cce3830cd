#pragma once

#include "training/computed/kept_values.hpp"
#include "training/computed/step_world.hpp"
#include "training/computed/training_job.hpp"
#include "training/layers/softmax_loss.hpp"

namespace ringmaster::training {

/// The numbers behind one rank's operations, in its device's memory. Whoever carries out its strategy, in one thread or
/// as an actor, has operations that need no other rank computed here, and has values that go to others or come from
/// them laid out here.
class rank_computation {
public:
  rank_computation(const training_job& job, value_store& store) : job_(job), store_(store) {}

  kept_values& kept() { return kept_; }
  const kept_values& kept() const { return kept_; }
  const loss_sums& losses() const { return losses_; }
  /// The first layer that has had an output in this step which is no finite number; `no_layer`: none has.
  uint32_t strays_at() const { return strays_at_; }

  /// Of such a world. A step that runs once more finds all that is free in one piece. Errors: those of
  /// kept_values::begin.
  caf::error begin_step(uint64_t step, const step_world& world);
  /// Whether a part that the operation loads is neither kept nor a first weight, and has to come from elsewhere: which.
  std::vector<kept_part> missing(const pending& x) const;
  /// What is kept of it from the beginning of that step, or was made by the one before; none: it is not here.
  std::optional<std::span<const std::byte>> part(uint64_t step, const kept_part& what) const;
  /// Where a part that comes from elsewhere is to lie. Errors: out_of_memory.
  caf::expected<block_pointer> room_for(const kept_part& what);

  /// Of an operation that needs no others: it has ended, and its results are there.
  /// Errors: out_of_memory, with what was to be held; of a collective those of `prepare`, and what `collective_rules`
  /// refuse.
  caf::error compute(pending& x);

  /// What a communication reads and writes.
  struct transfer {
    block_pointer input;
    uint64_t offset = 0; ///< Bytes of the input before it; in place of the output's, too.
    uint64_t count = 0;  ///< Elements: of a block where the collective has blocks, else of the whole.
    block_pointer
      output; ///< The input where it is in place; null where it is only known when the other ranks are there.
  };
  /// Errors: out_of_memory; invalid_argument for what these layers cannot do.
  caf::expected<transfer> prepare(const pending& x);
  /// Room for what comes from others. Errors: out_of_memory.
  caf::expected<block_pointer> room_for(const value_tag& what) { return room_for(what, bytes_of(what)); }
  /// The communication has ended: the result is in the block, null where there is none.
  void complete(pending& x, block_pointer result);

private:
  /// One behind the other, what is kept: an attempt with other ranks may have left it in the way of this one.
  caf::error pack();
  uint64_t bytes_of(const value_tag& x) const { return elements(job_, x) * training::bytes_of(job_.as); }
  /// `first`: it is the first of its kind, and stays, as what is kept does.
  caf::expected<block_pointer> room_for(const value_tag& what, uint64_t used, bool first = false);
  /// Column shards lie between each other in the whole, and one behind the other when they move.
  caf::expected<transfer> prepare_columns(const pending& x);
  const std::byte* data(const pending& x, size_t argument) const { return store_.at(x.memory[argument])->data; }
  /// The argument's block, for the operation alone. Errors: out_of_memory.
  caf::expected<block_pointer> own(uint64_t token, const value_tag& what);

  caf::error load(pending& x);
  caf::error add(pending& x);
  caf::error slice(pending& x);
  caf::error update(pending& x);
  caf::error finish(pending& x);
  caf::error move(pending& x);
  /// A collective whose group has this rank alone.
  caf::error collect_own(pending& x);

  // rank_computation_layers.cpp
  caf::error input(pending& x);
  pass pass_of(const pending& x) const;
  caf::error forward(pending& x);
  caf::error backward(pending& x);
  caf::error loss(pending& x);

  const training_job& job_;
  value_store& store_;
  kept_values kept_;
  step_world world_{1, {}};
  loss_sums losses_;
  uint32_t strays_at_ = no_layer;
};

} // namespace ringmaster::training
