#pragma once

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/algorithms/parts/folded_world.hpp"
#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view halving_reduce_scatter_cost
  = "log2 P rounds for P = N a power of two, and every block but one; otherwise two more, and all elements once more";
inline constexpr std::string_view halving_reduce_cost
  = "2 log2 P rounds for P = N a power of two, and at most the elements once; otherwise one more";

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

} // namespace ringmaster
