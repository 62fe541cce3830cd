#pragma once

#include "planner/costs/transformer_places.hpp"
#include "training/language/executor.hpp"

namespace ringmaster::training {

/// Bytes that a rank holds of a transformer's places. A layer's input that is kept for the backward counts what the
/// whole layer keeps, its keys and network with it; recomputed, its input.
class transformer_memory {
public:
  /// `context`: ranks that a strategy itself has share positions. `shards_stand_for_all`: what few ranks share stands
  /// for what all do. `fewer_sharers`: fewer ranks are simulated than share weights, so a part is as small as with all.
  transformer_memory(const language_model& trained, const parallel_setting& how, const transformer_places& places,
                     uint32_t context, bool shards_stand_for_all, bool fewer_sharers)
    : trained_(trained), how_(how), places_(places), context_(context), shards_stand_for_all_(shards_stand_for_all),
      fewer_sharers_(fewer_sharers) {}

  double bytes_of(const value_tag& x) const;
  /// What an operation needs while it lasts.
  double working_bytes(const pending& x) const;
  /// Of a place's shard.
  rank_parameters parameters(const value_tag& x) const;
  /// Of which a rank has the optimizer's states: context ranks share them, too, and experts' other ones do.
  double state_parameters(value_tag x) const;
  /// Of an activation of all positions that a rank has of some samples.
  double plain_bytes(double samples) const {
    return bf16_bytes * samples * trained_.sequence / how_.context * trained_.hidden;
  }
  /// Between layers tensor-parallel ranks have a part of the positions each.
  bool in_sequence() const { return how_.sequence_parallel && how_.shape.tensor > 1; }
  /// As many of a rank's own samples as a value is of, or an operation: what is sent to experts is of others', too.
  uint64_t own_samples(const value_tag& x) const;

private:
  double activation_bytes_of(const value_tag& x) const;
  bool is_part_of_tensor_rank(const value_tag& x) const {
    return x.has == form::columns || (x.has == form::sequence && x.part.count > context_);
  }
  bool is_kept(const value_tag& x) const;

  const language_model& trained_;
  const parallel_setting& how_;
  const transformer_places& places_;
  uint32_t context_;
  bool shards_stand_for_all_; ///< Two for those of all that share weights fully.
  bool fewer_sharers_;        ///< Than there are.
};

} // namespace ringmaster::training
