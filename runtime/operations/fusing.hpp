#pragma once

#include "runtime/operations/operation_queue.hpp"

namespace ringmaster {

/// Whether it is so small that company would save more than copying costs, of as many elements for each rank, and its
/// bits are not changed by company. `deterministic`: additions are in rank order anyway; else of those whose order
/// matters only such whose elements have the same bits wherever they lie in their block.
bool may_be_fused(const operation& op, bool deterministic);

/// Whether it may be walked as one with an earlier one, where both may be with others: the same collective with the
/// same root and type, of what the other does not write.
bool may_follow(const operation& op, const operation& earlier);

/// Makes one plan of those that may be fused, of a group or of calls that may wait, and of which none reads what an
/// earlier one writes: ranks walk them as one, since a walk costs as many messages for one element as for a thousand.
/// (NCCL fuses a group's calls for the same reason, Horovod what is called in a moment.) The plans' operations are in
/// the queue, and are told who leads them. `bytes_max`: of the inputs of one plan.
proto::OperationBatch fuse(proto::OperationBatch batch, operation_queue& operations, bool deterministic,
                           uint64_t bytes_max);

} // namespace ringmaster
