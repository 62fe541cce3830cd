#pragma once

#include "training/computed/kept_values.hpp"
#include "training/computed/step_world.hpp"
#include "training/computed/training_job.hpp"
#include "training/layers/softmax_loss.hpp"

namespace ringmaster::training {

/// The numbers of one rank's operations, in its device's memory. The executor of its strategy, in one thread or as an
/// actor, has it compute the operations that need no other rank, and lay out the values that are sent or received.
class rank_computation {
public:
  rank_computation(const training_job& job, value_store& store) : job_(job), store_(store) {}

  kept_values& kept() { return kept_; }
  const kept_values& kept() const { return kept_; }
  const loss_sums& losses() const { return losses_; }
  /// The first layer with an output in this step that is not a finite number; `no_layer`: none.
  uint32_t strays_at() const { return strays_at_; }

  /// A step of this world starts. When a step is repeated, free memory is made contiguous first. Errors: those of
  /// kept_values::begin.
  caf::error begin_step(uint64_t step, const step_world& world);
  /// The parts that the operation loads and that are neither kept nor first weights: they have to come from elsewhere.
  std::vector<kept_part> missing(const pending& x) const;
  /// The part as it was before that step; none: this rank does not have it.
  std::optional<std::span<const std::byte>> part(uint64_t step, const kept_part& what) const;
  /// Memory for a part that comes from elsewhere. Errors: out_of_memory.
  caf::expected<block_pointer> room_for(const kept_part& what);

  /// Computes an operation that needs no other rank, and stores its results. Errors: out_of_memory, with the value; for
  /// a collective those of `prepare` and of `collective_rules`.
  caf::error compute(pending& x);

  /// What a communication reads and writes.
  struct transfer {
    block_pointer input;
    uint64_t offset = 0;  ///< Bytes of the input before it; in place of the output's, too.
    uint64_t count = 0;   ///< Elements: of a block if the collective has blocks, else of the whole.
    block_pointer output; ///< The input if it is in place; null if its size follows from what the other ranks have.
  };
  /// Errors: out_of_memory; invalid_argument for what these layers cannot do.
  caf::expected<transfer> prepare(const pending& x);
  /// Memory for what comes from others. Errors: out_of_memory.
  caf::expected<block_pointer> room_for(const value_tag& what) { return room_for(what, bytes_of(what)); }
  /// The communication has finished: the result is in the block; null: there is none.
  void complete(pending& x, block_pointer result);

private:
  /// Moves what is kept together: an attempt with other ranks may have left it scattered.
  caf::error pack();
  uint64_t bytes_of(const value_tag& x) const { return elements(job_, x) * training::bytes_of(job_.as); }
  /// `first`: it is the first of its kind, and lives on after the step, as what is kept does.
  caf::expected<block_pointer> room_for(const value_tag& what, uint64_t used, bool first = false);
  /// Column shards are interleaved in the whole, and contiguous when they are sent.
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
  /// A collective whose group is this rank alone.
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
