#pragma once

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/algorithms/parts/folded_world.hpp"
#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view butterfly_all_gather_cost
  = "log2 P rounds for P = N a power of two, and every block but one; otherwise two more, and all elements once more";

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

} // namespace ringmaster
