#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

inline constexpr std::string_view halving_doubling_all_reduce_cost
  = "2 log2 P rounds and 2(P-1)/P x count elements for P = N a power of two; otherwise two more, and count more";

/// Rabenseifner's all-reduce: a reduce-scatter by recursive halving (halving.hpp), then an all-gather by recursive
/// doubling (butterfly_blocks.hpp), over P nearly equal blocks. All sums arise in the output; no scratch. As few
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

} // namespace ringmaster
