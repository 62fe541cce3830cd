#pragma once

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/algorithms/parts/folded_world.hpp"
#include "runtime/schedule/collective.hpp"

namespace ringmaster {

/// All-reduce by recursive doubling: in round k, each rank exchanges its sum with the rank whose number differs in bit
/// k, and both add. So every sum is over 2 ranks after one round, over 4 after two, ..., and every rank has the whole
/// sum after log2 N.
///
/// If N is not a power of two, the ranks from M on, the largest power of two below N, first send their inputs to
/// their partners M below them, which add them to their own; at last they get the result from there.
///
/// In an exchange, a rank's old sum is read while its new one is computed, so sums are computed alternately in output
/// and scratch (count elements), the last one in the output.
///
/// The same bits on every rank: after round k, the 2^(k+1) ranks of a group hold the same sum. For the two sides of
/// an exchange compute op(a, b) and op(b, a), where a and b are the same bits for both by induction, and our
/// operations are commutative in bits: IEEE addition and multiplication are, NaN is always the same one, and MIN and
/// MAX order the zeros. So all ranks compute the same tree of additions, though no rank holds all of it.
///
/// Cost: log2 M rounds, and 2 more if N > M. A rank sends and receives log2 M messages of count elements, and one more
/// if it is a partner. It wins where the count is small.
///
/// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH.
/// International Journal of High Performance Computing Applications 19(1), 2005.
schedule plan_butterfly_all_reduce(const plan_request& request);
algorithm_cost cost_of_butterfly_all_reduce(const plan_request& request);

/// All-gather by recursive doubling: in round k rank r and the rank whose number differs in bit k send each other all
/// they have, 2^k blocks that follow each other.
///
/// Any N: the world is folded onto P ranks first (folded_world.hpp). In one round each extra sends its block to its
/// neighbour, which then has two to start with; in a last round it gets the whole.
///
/// Cost: log2 P rounds, and each rank sends as much as it receives, every block but about one, if N = P. Otherwise two
/// rounds more, and a rank with an extra sends everything once more; Bruck's algorithm is better there.
///
/// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH.
/// International Journal of High Performance Computing Applications 19(1), 2005.
schedule plan_butterfly_all_gather(const plan_request& request);
algorithm_cost cost_of_butterfly_all_gather(const plan_request& request);

/// The doubling among the survivors, log2 P rounds from `round` on, over `cut`, which has one block for each of them,
/// together a whole output. The survivor's own is at `own`.
void double_up(schedule_builder& plan, uint32_t round, const folded_world& world, const blocks& cut, block_range own);
/// The last round, if there are extras: they get the whole output.
void unfold_outputs(schedule_builder& plan, uint32_t round, const folded_world& world, block_range output);

void count_doubling(cost_counter& counter, const folded_world& world, const blocks& cut);
void count_unfold(cost_counter& counter, const folded_world& world, uint64_t elements);

/// Reduce-scatter by recursive halving. A group of ranks that shares a run of blocks halves itself and the run: each
/// rank sends the half of the run that belongs to the other half of the group to its opposite number there, receives
/// its own half from it and adds it. After log2 P rounds the group is one rank and the run its block. The sums arise in
/// scratch, the last one in the output.
///
/// Any N: the world is folded onto P ranks first (folded_world.hpp). In one round each extra sends its whole input to
/// its neighbour, which adds it and halves for two blocks in place of one; in a last round the extra gets its block.
///
/// Cost: log2 P rounds, and each rank sends every block but its own, if N = P. Otherwise two rounds more; an extra
/// sends the whole input, which takes about as long as all that follows.
///
/// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH.
/// International Journal of High Performance Computing Applications 19(1), 2005.
schedule plan_halving_reduce_scatter(const plan_request& request);
algorithm_cost cost_of_halving_reduce_scatter(const plan_request& request);

/// Reduce by recursive halving, then a gather along a binomial tree, both over P nearly equal blocks: ranks are counted
/// from the root, and the gather undoes the halving, so every message is one run of elements. The root's sums arise in
/// its output, the others' in scratch. Any N: extras send their inputs to their neighbours first, and are done.
///
/// Cost: 2 log2 P rounds; a rank sends (P-1)/P of the elements in the halving and up to half of them in the gather, the
/// root none there. The root's port takes in about twice the elements, and log2 N times as many in a binomial tree of
/// whole inputs.
///
/// Source: R. Rabenseifner: Optimization of collective reduction operations. International Conference on Computational
/// Science (ICCS) 2004, LNCS 3036.
schedule plan_halving_reduce(const plan_request& request);
algorithm_cost cost_of_halving_reduce(const plan_request& request);

/// Where a rank keeps what it has of a run of elements: element i of the run is element i - `start` of `where`.
struct workspace {
  buffer where = buffer::scratch;
  uint64_t start = 0;

  block_range at(block_range range) const { return {where, range.offset - start, range.count}; }
};

/// Phases of the algorithms above and of others like them, over `cut`, which has one block for each survivor.

/// One round, if there are extras: their whole inputs go to their survivors, whose sums of two arise in `work`. Returns
/// whether this rank is a survivor, which has more to do.
bool fold_inputs(schedule_builder& plan, const folded_world& world, const blocks& cut, workspace work);
/// The blocks that the survivor still has to do with when 2^level ranks share them.
block_range halved_run(const blocks& cut, uint32_t survivor, uint32_t level);
/// log2 P rounds from the fold on. The survivor's own block is finished at `result`; sums on the way arise in `work`.
void halve(schedule_builder& plan, const folded_world& world, const blocks& cut, workspace work, block_range result);

void count_fold(cost_counter& counter, const folded_world& world, uint64_t elements);
void count_halving(cost_counter& counter, const folded_world& world, const blocks& cut);

/// Rabenseifner's all-reduce: a reduce-scatter by recursive halving, then an all-gather by recursive
/// doubling above, over P nearly equal blocks. All sums arise in the output; no scratch. As few
/// elements as the ring, in log N rounds: the choice for middle sizes.
///
/// Any N: the world is folded onto P ranks (folded_world.hpp). In one round more each extra sends its input to its
/// neighbour, and in another it gets the result. Each block is reduced on one rank only, so all hold the same bits.
///
/// Cost: 2 log2 P rounds; a rank sends 2(P-1)/P x count elements. If N is no power of two, two rounds more, in which a
/// rank with an extra receives, and later sends, count elements more.
///
/// Source: R. Rabenseifner: Optimization of collective reduction operations. International Conference on Computational
/// Science (ICCS) 2004, LNCS 3036.
schedule plan_halving_doubling_all_reduce(const plan_request& request);
algorithm_cost cost_of_halving_doubling_all_reduce(const plan_request& request);

/// Van de Geijn's broadcast: the root scatters N nearly equal blocks, and an all-gather makes them whole everywhere.
/// Ranks and blocks are counted from the root.
///
/// *Scatter* along a binomial tree, ceil(log2 N) rounds: who has the blocks of a group of ranks sends those of its
/// upper half to the first rank there. *All-gather* by doubling, ceil(log2 N) rounds: Bruck's, which wants
/// no power of two. Every block is received where it belongs in the output; the root gets nothing back. Van de Geijn
/// takes a ring for the second part: N-1 rounds, and the same elements.
///
/// Cost: 2 ceil(log2 N) rounds; the root, which has most to send, sends every block but its own in each part.
///
/// Source: M. Barnett, L. Shuler, S. Gupta, D. G. Payne, R. van de Geijn, J. Watts: Interprocessor collective
/// communication library (InterCom). Scalable High Performance Computing Conference 1994.
schedule plan_scatter_all_gather_broadcast(const plan_request& request);
algorithm_cost cost_of_scatter_all_gather_broadcast(const plan_request& request);

} // namespace ringmaster
