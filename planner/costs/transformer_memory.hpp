#pragma once

#include "planner/costs/transformer_places.hpp"
#include "training/language/executor.hpp"

namespace ringmaster::training {

/// Bytes that a rank holds of a transformer's places. A layer's input that is kept for the backward counts everything
/// that the layer keeps, or only the input with recomputation.
class transformer_memory {
public:
  /// `context`: ranks that share positions within the strategy itself. `shards_represent_all`: two ranks represent all
  /// that share weights. `fewer_sharers`: fewer ranks are simulated than share weights; parts have their true size.
  transformer_memory(const language_model& trained, const training_setting& how, const transformer_places& places,
                     uint32_t context, bool shards_represent_all, bool fewer_sharers)
    : trained_(trained), how_(how), places_(places), context_(context), shards_represent_all_(shards_represent_all),
      fewer_sharers_(fewer_sharers) {}

  double bytes_of(const value_tag& x) const;
  /// What an operation needs while it runs.
  double working_bytes(const pending& x) const;
  /// Of a place's shard.
  rank_parameters parameters(const value_tag& x) const;
  /// The parameters whose optimizer states a rank has: context ranks share them as well; experts have other sharers.
  double state_parameters(value_tag x) const;
  /// Of an activation of a rank's positions of some samples.
  double plain_bytes(double samples) const {
    return bf16_bytes * samples * trained_.sequence / how_.cp * trained_.hidden;
  }
  /// Between layers tensor-parallel ranks have a part of the positions each.
  bool in_sequence() const { return how_.sequence_parallel && how_.tp > 1; }
  /// A value's size in samples of this rank: values sent to experts include other ranks' samples.
  uint64_t own_samples(const value_tag& x) const;

private:
  double activation_bytes_of(const value_tag& x) const;
  bool is_part_of_tensor_rank(const value_tag& x) const {
    return x.has == form::columns || (x.has == form::sequence && x.part.count > context_);
  }
  bool is_kept(const value_tag& x) const;

  const language_model& trained_;
  const training_setting& how_;
  const transformer_places& places_;
  uint32_t context_;
  bool shards_represent_all_; ///< Two for those of all that share weights fully.
  bool fewer_sharers_;        ///< Than there are.
};

} // namespace ringmaster::training
