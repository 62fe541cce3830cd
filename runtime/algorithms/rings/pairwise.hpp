#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view pairwise_reduce_scatter_cost
  = "N-1 rounds; each rank sends every block but its own, which no algorithm can undercut";
inline constexpr std::string_view pairwise_all_to_all_cost
  = "N-1 rounds; each rank sends every block but its own, which no algorithm can undercut";

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

} // namespace ringmaster
