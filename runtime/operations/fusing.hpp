#pragma once

#include "runtime/operations/operation_queue.hpp"

namespace ringmaster {

/// Makes one plan of those of a group's small all-reduces that do not touch each other's data: ranks walk them as one,
/// since a walk costs as many messages for one element as for a thousand. (NCCL fuses a group's calls for the same
/// reason.) The plans' operations are in the queue, and are told who leads them. `deterministic`: additions are in rank
/// order anyway; else only those are fused whose elements have the same bits wherever they lie in the buffer.
proto::OperationBatch fuse(proto::OperationBatch batch, operation_queue& operations, bool deterministic);

} // namespace ringmaster
