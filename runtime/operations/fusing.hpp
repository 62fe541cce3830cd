#pragma once

#include "runtime/operations/operation_queue.hpp"

namespace ringmaster {

/// How much may be fused.
struct fusing_limits {
  bool deterministic = false; ///< Additions are in rank order in any case.
  uint64_t packed_bytes = 0;  ///< Of all operations that are walked as one.
  uint64_t shadow_bytes = 0;  ///< Of a series with results that are kept separate until the release.
  uint64_t series_bytes = 0;  ///< Of another series.
};

/// The most operations in a series: they are decided together, and run again together.
constexpr int series_plans_max = 64;

/// Whether its plan may wait for later calls while earlier operations are in flight: only if it can be fused with them.
/// `latest`: the latest operation that waits; null: none does.
bool may_wait_for_company(const operation& op, const operation* latest, const fusing_limits& limits);

/// Fuses operations of a group, or of calls that may wait: a walk costs the same number of messages for one element as
/// for a thousand, and a report the same for one operation as for a series. (NCCL fuses a group's calls for the same
/// reason, Horovod calls that come within a moment.) Sets `leader` of the plans' operations, which are in the queue.
///
/// - Small operations of the same collective are *packed*: walked as one, if that changes no bits of the results.
/// - All others, and packed ones, are walked as a *series*: one after the other as each would be by itself, but no rank
///   waits between two of them until all ranks have finished the first.
///
/// No operation that is fused reads the output of another one of them, or overwrites another one's input.
proto::OperationBatch fuse(proto::OperationBatch batch, operation_queue& operations, const fusing_limits& limits);

} // namespace ringmaster
