#pragma once

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/schedule/collective.hpp"

namespace ringmaster {

/// Bruck's all-gather: after k rounds rank r has the 2^k blocks r, r+1, ..., modulo N. In round k it sends them to rank
/// r - 2^k, in the last round only those that are missing there, and receives the same number from r + 2^k.
///
/// Bruck keeps the blocks in this order, the rank's own first, and turns them round in the end. Here they are received
/// where they belong, so nothing is moved twice; a run that goes past block N-1 is sent as two messages.
///
/// Cost: ceil(log2 N) rounds; a rank sends every block but one. The best there is for every N in both.
///
/// Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for all-to-all communications
/// in multiport message-passing systems. IEEE Transactions on Parallel and Distributed Systems 8(11), 1997.
schedule plan_bruck_all_gather(const plan_request& request);
algorithm_cost cost_of_bruck_all_gather(const plan_request& request);

/// Bruck's all-to-all, for blocks of one size. Slot j of rank r is what has j ranks to go from here, at first the block
/// for rank r+j. In round k the slots whose number has bit k go on to rank r + 2^k, as one message: they are packed in
/// scratch, and come into the same slots there. A slot has arrived after the highest bit of its number, and came from
/// rank r-j.
///
/// Bruck unpacks what came in. Here every round's message stays where it came, and the next one that takes a slot along
/// packs it from there; in a last, local round all slots are copied to the output. A rank thus copies every slot once a
/// hop, and needs scratch for about (N/2)(1 + log2 N) blocks: small ones, for which this algorithm is.
///
/// Cost: ceil(log2 N) rounds and a local one; each rank sends (N/2) log2 N blocks (N a power of two), where the
/// pairwise exchange sends N-1 in as many rounds and messages.
///
/// Source: as above.
schedule plan_bruck_all_to_all(const plan_request& request);
algorithm_cost cost_of_bruck_all_to_all(const plan_request& request);
/// Errors: invalid_argument for counts by rank.
caf::error check_bruck_all_to_all(const plan_request& request);

/// The all-gather among ranks counted from `root`, `round` being its first, over `cut`, one block for each of them in
/// this order and all an output's whole. The rank's own is at `own`. `to_root`: the root wants the blocks, too.
void gather_all(schedule_builder& plan, uint32_t round, const blocks& cut, block_range own, uint32_t root,
                bool to_root);
void count_all_gather(cost_counter& counter, const blocks& cut, uint32_t root, bool to_root);

// The pipelined chain. The ranks stand in a row that begins with the root: root, root + 1, ..., around to root - 1. The
// elements are cut into P pieces of request.chunk elements (0: default_chunk, 32768); the last may be shorter. While a
// rank hands one piece on it takes the next, so in the middle of a long transfer all links are busy.

/// Broadcast along the chain. In round t, the v-th rank of the row sends piece t - v, which came in the round before.
///
/// Cost: N-2+P rounds, a latency and a piece each. Each rank but the last sends P messages and count elements, which no
/// algorithm can undercut; the first piece needs N-1 rounds to the end of the row, so it takes P >> N to tell.
///
/// Source: J. Pjesivac-Grbovic, T. Angskun, G. Bosilca, G. Fagg, E. Gabriel, J. Dongarra: Performance analysis of MPI
/// collective operations. Cluster Computing 10(2), 2007 (the pipeline algorithm).
schedule plan_chain_broadcast(const plan_request& request);
algorithm_cost cost_of_chain_broadcast(const plan_request& request);

/// Reduce along the chain: the same backwards, from the last of the row to the root. Each rank adds its own input to a
/// piece before it hands it on: x0 + (x1 + (x2 + ...)), numbered from the root. The sums arise in the root's output and
/// elsewhere in scratch, two pieces of it.
///
/// Cost: N-2+P rounds, a latency and a piece each. Each rank but the root sends P messages and count elements.
schedule plan_chain_reduce(const plan_request& request);
algorithm_cost cost_of_chain_reduce(const plan_request& request);

/// All-reduce: the reduction to rank 0, then the broadcast back. One sum, of which all get a copy: the same bits on
/// every rank. To send the first pieces back while the last are still coming would not end sooner: in both directions
/// each inner rank's ports have 2P pieces to carry, and they are the bottleneck.
///
/// Cost: 2(N-2+P) rounds, a latency and a piece each. Each inner rank sends 2P messages and 2 x count elements.
schedule plan_chain_all_reduce(const plan_request& request);
algorithm_cost cost_of_chain_all_reduce(const plan_request& request);

/// Barrier without a root: in round k, rank r sends a token to rank r + 2^k and waits for the one from r - 2^k, around
/// the circle. A rank that ends round k knows of the 2^(k+1) ranks up to itself that they have come, since each token
/// is sent only after those of the rounds before were received. So it knows of all after ceil(log2 N) rounds, for
/// any N.
///
/// The tokens are elements of scratch: one is sent, the other received into, in each round.
///
/// Cost: ceil(log2 N) rounds, in each of which every rank sends one token and receives one. Half of the tree's.
///
/// Source: D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International Journal of
/// Parallel Programming 17(1), 1988.
schedule plan_dissemination_barrier(const plan_request& request);
algorithm_cost cost_of_dissemination_barrier(const plan_request& request);

/// Reduce-scatter by pairwise exchange: in round t = 1..N-1 rank r sends rank r+t that rank's block of its own input,
/// and receives its own block from rank r-t and adds it. Everything goes straight to where it belongs, so nothing is
/// passed on and no scratch is needed. Block b is summed in the order b, b-1, ..., 0, N-1, ..., b+1.
///
/// Cost: N-1 rounds; a rank sends every block but its own, and receives N-1 blocks of its own size. As good as the
/// ring, and no round needs what came in the last one, but each rank talks to all others.
///
/// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH.
/// International Journal of High Performance Computing Applications 19(1), 2005.
schedule plan_pairwise_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_pairwise_reduce_scatter(const plan_request& request);

/// All-to-all by pairwise exchange: in round t = 1..N-1 rank r sends to rank r+t and receives from rank r-t, so that no
/// two blocks ever want the same port. The rank's own block is copied in the first round.
///
/// Cost: N-1 rounds; a rank sends every block but its own. With blocks of different sizes a round takes as long as its
/// largest block.
///
/// Source: as above.
schedule plan_pairwise_all_to_all(const plan_request& request);
algorithm_cost cost_of_pairwise_all_to_all(const plan_request& request);

/// All-reduce around a ring: each rank talks to its two neighbours only, always sending to rank + 1 and receiving
/// from rank - 1.
///
/// The elements are cut into N blocks. *Reduce-scatter*, N-1 rounds: every block sets out from the rank of its own
/// number and goes once around; each rank that it meets adds its own input to it and passes the sum on in the next
/// round. In every round each rank sends one block and receives another, so all links are busy all the time. When it
/// ends, rank r holds the whole sum of block r+1. *All-gather*, N-1 rounds: the whole blocks go around once more, and
/// each rank keeps a copy of what it passes on.
///
/// The first block is sent from the input and every later one from the output, where the sums arise, so no rank ever
/// copies anything. Block b is summed in the order b, b+1, ..., N-1, 0, ..., b-1: the same bits on every rank and in
/// every run, but not those of another algorithm.
///
/// Cost: 2(N-1) rounds. A rank sends, and receives, every block twice but for two that it sends once: about
/// 2(N-1)/N x count elements, at most 2(N-1) x ceil(count/N). Blocks without elements (count < N) are not sent; their
/// rounds stay.
///
/// Source: P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. Journal of
/// Parallel and Distributed Computing 69(2), 2009.
schedule plan_ring_all_reduce(const plan_request& request);
algorithm_cost cost_of_ring_all_reduce(const plan_request& request);

/// The first phase alone. Block b sets out from rank b+1, so that it is whole on rank b. The sums that only pass
/// through have no place in the output: they live in two slots of scratch, one filled while the other is sent.
///
/// Cost: N-1 rounds; a rank sends every block but its own. With blocks of different sizes a round takes as long as the
/// largest block, wherever it is.
schedule plan_ring_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_ring_reduce_scatter(const plan_request& request);

/// The second phase alone: block b sets out from rank b. A rank's own block is copied into its output in round 0.
///
/// Cost: N-1 rounds; a rank sends every block but the next rank's.
schedule plan_ring_all_gather(const plan_request& request);
algorithm_cost cost_of_ring_all_gather(const plan_request& request);

/// All-reduce around a ring whose blocks are cut into P pieces that follow each other: piece k makes its
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
/// Source: P. Patarasuk, X. Yuan, as above; the pieces as in NCCL, which calls a piece a slice.
schedule plan_ring_pipelined_all_reduce(const plan_request& request);
algorithm_cost cost_of_ring_pipelined_all_reduce(const plan_request& request);

} // namespace ringmaster
