#pragma once

#include "messages/transfer.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/request_of.hpp"

#include <caf/expected.hpp>

#include <cstdint>

namespace ringmaster {

/// The plan of an operation as one of its ranks sees it. The plan itself is kept alive by its owner.
class rank_plan {
public:
  rank_plan() = default;
  rank_plan(const proto::OperationPlan& plan, uint32_t rank) : plan_(&plan), rank_(rank) {}

  const proto::OperationPlan* operator->() const { return plan_; }
  const proto::OperationPlan& operator*() const { return *plan_; }
  const proto::Collective& what() const { return plan_->collective(); }
  uint32_t rank() const { return rank_; }
  uint32_t world_size() const { return static_cast<uint32_t>(plan_->device_ids_size()); }
  plan_request request() const { return request_of(*plan_, rank_); }
  /// The rank's schedule.
  caf::expected<schedule> planned() const;

  /// Several small operations are walked as one: their inputs are packed, their outputs unpacked.
  bool fused() const { return !plan_->fused().empty(); }
  bool has_factors() const { return what().op() == gpu_sim::PREMUL_SUM && reduces(what().kind()); }
  double factor() const { return what().factors(what().factors_size() == 1 ? 0 : static_cast<int>(rank_)); }
  /// Whether a copy of the input takes its place: packed, times its factor, and scaled.
  bool stages() const { return fused() || has_factors(); }

  /// Of fused operations, the first one's.
  uint64_t input_address() const {
    return (fused() ? plan_->fused(0).input_addresses() : plan_->input_addresses()).Get(static_cast<int>(rank_));
  }
  uint64_t output_address() const {
    return (fused() ? plan_->fused(0).output_addresses() : plan_->output_addresses()).Get(static_cast<int>(rank_));
  }

  transfer_key key_of(uint32_t block, uint32_t source, uint32_t destination) const {
    return {
      plan_->comm_id(), epoch_number{plan_->epoch()}, sequence_number{plan_->sequence()}, source, destination, block};
  }

private:
  const proto::OperationPlan* plan_ = nullptr;
  uint32_t rank_ = 0;
};

} // namespace ringmaster
