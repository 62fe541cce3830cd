#pragma once

#include "runtime/operations/operation_queue.hpp"

namespace ringmaster {

/// How much may go together.
struct fusing_limits {
  bool deterministic = false; ///< Additions are in rank order anyway.
  uint64_t packed_bytes = 0;  ///< Of operations that are walked as one, in all.
  uint64_t shadow_bytes = 0;  ///< Of a series of which results are kept apart until the release, in all.
  uint64_t series_bytes = 0;  ///< Of another series.
};

/// Of operations walked as a series at most: they are certain together, and run again together.
constexpr int series_plans_max = 64;

/// Whether its plan may wait for company while earlier operations are under way. `latest`: the latest that waits; null:
/// none does. Else it would wait for nothing.
bool may_wait_for_company(const operation& op, const operation* latest, const fusing_limits& limits);

/// Has ranks walk and report together what need not be apart, of a group or of calls that may wait, since a walk costs
/// as many messages for one element as for a thousand, and a report as many for one operation as for a series. (NCCL
/// fuses a group's calls for the same reason, Horovod what is called in a moment.) The plans' operations are in the
/// queue, and are told who leads them.
///
/// - Small ones of the same collective are *packed*: walked as one. Only where company changes no bits.
/// - All others, and those that are packed, are walked as a *series*: one after the other as each would be by itself,
/// but
///   nobody waits between two of them until all ranks have finished the first.
///
/// Nothing that goes together reads what another one of it makes, nor undoes another one's input.
proto::OperationBatch fuse(proto::OperationBatch batch, operation_queue& operations, const fusing_limits& limits);

} // namespace ringmaster
