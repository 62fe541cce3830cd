#pragma once

#include "messages/gpu_sim.pb.h"
#include "runtime/schedule/schedule.hpp"

#include <vector>

namespace ringmaster {

// Deterministic mode: an algorithm that adds in rank order, ((x0 op x1) op x2) ... op x(n-1), wherever its own order is
// another one. Its messages go the same ways in the same rounds, but what it would add on the way travels apart: in
// place of a partial sum goes what the sum stands for, one contribution a rank. A rank keeps what it gets in lanes of
// scratch, next to each other for each segment of elements. As soon as it has a segment of all ranks it folds it, from
// left to right, into where the algorithm would have had the sum; from then on that travels as the one block it is.
//
// Rounds and peers stay as they are, but blocks grow by the contributions that they stand for. All-reduce of N ranks: a
// ring's scratch is (N-1)/2 times the buffer and so is what a rank sends at most for the reduction; one_shot and
// butterfly need N times the buffer, a tree's root the same, direct one buffer. Integers, MIN and MAX give the same
// bits in any order: they do not need this.

/// Whether the order of the ranks shows in the bits of the result: the kind reduces, and `order_shows`.
bool order_matters(proto::CollectiveKind kind, proto::DataType type, gpu_sim::ReduceOp op);

/// What `plan` gives, adding in rank order; the same where the kind does not reduce. Walks the schedules of all ranks,
/// and keeps what came of the latest of them for the other ranks of the process, so any thread may ask. Errors: as of
/// `plan`; invalid_argument also for schedules that are not right, or that bring a rank the same contribution twice.
caf::expected<schedule> plan_in_rank_order(proto::CollectiveKind kind, std::string_view algorithm_name,
                                           const plan_request& request);

/// The same for all ranks, and nothing is kept.
caf::expected<std::vector<schedule>> plan_all_in_rank_order(proto::CollectiveKind kind, std::string_view algorithm_name,
                                                            const plan_request& request);

} // namespace ringmaster
