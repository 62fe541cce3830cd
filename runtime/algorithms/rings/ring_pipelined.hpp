#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view ring_pipelined_all_reduce_cost
  = "2(N-1)+P-1 rounds for P pieces a block; each rank sends 2(N-1)/N x count elements";

/// All-reduce around a ring (see ring.hpp) whose blocks are cut into P pieces that follow each other: piece k makes its
/// 2(N-1) steps one round behind piece k-1. The pieces have request.chunk elements (0: default_chunk, 32768); a
/// block's last one may be shorter. A round of a rank holds up to P sends and P receives, of pieces that do not
/// depend on each other: while one is on its way another is being added, and a piece that was added a round ago may
/// still be in the cache. With a chunk as large as a block it is the ring, step for step.
///
/// The sums are taken in the ring's order: the same bits on every rank, whatever the chunk.
///
/// Cost: 2(N-1)+P-1 rounds and latencies, P-1 more than the ring, and the same elements: the ring's links are busy all
/// the time already. What it wins is the time of the additions, which this cost does not count.
///
/// Source: P. Patarasuk, X. Yuan (see ring.hpp); the pieces as in NCCL, which calls a piece a slice.
schedule plan_ring_pipelined_all_reduce(const plan_request& request);
algorithm_cost cost_of_ring_pipelined_all_reduce(const plan_request& request);

} // namespace ringmaster
