#pragma once

#include "messages/status.pb.h"
#include "messages/verdict.pb.h"
#include "runtime/operations/operation.hpp"

#include <chrono>
#include <span>

namespace ringmaster {

/// Who waits for whom in a communicator's first operation in flight, and which rank is at the end of that chain: the
/// cause, where the rank whose limit passes first is only the one that noticed. Pure.

/// The operation, and each rank that waits in it. Nothing if none runs.
proto::Verdict waits_in(const proto::CommunicatorStatus& status);

/// The step at which the operation stood for this rank.
void note_step(proto::Verdict& x, const proto::CommunicatorStatus& status, uint32_t rank);

/// `waits_in` with the cause, of an operation that did not end in time:
///
/// - ranks that others wait for and that wait for none: hung if their answers are late, or if no rank has made progress
///   for `still`; else slow. What a rank said before its answers became late does not count.
/// - else two ranks of different processes that wait for each other without progress: unreachable;
/// - else unknown, without culprits.
///
/// `ranks`: those of the status.
proto::Verdict cause_in(const proto::CommunicatorStatus& status, std::span<const rank_device> ranks,
                        std::chrono::nanoseconds still);

} // namespace ringmaster
