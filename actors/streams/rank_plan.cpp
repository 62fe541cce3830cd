#include "actors/streams/rank_plan.hpp"

#include "runtime/algorithms/registry.hpp"
#include "runtime/rank_order/rank_order.hpp"

namespace ringmaster {

caf::expected<schedule> rank_plan::planned() const {
  // A factor or a division changes the input even of a single rank; a division at least the bits of a NaN.
  const bool changes = reduces(what().kind()) && (what().op() == gpu_sim::PREMUL_SUM || what().op() == gpu_sim::AVG);
  if (world_size() == 1 && !fused() && input_address() == output_address() && !changes)
    return schedule{}; // with one rank and in place the input is the result
  return plan_->rank_order() ? plan_in_rank_order(what().kind(), what().algorithm(), request())
                             : plan(what().kind(), what().algorithm(), request());
}

} // namespace ringmaster
