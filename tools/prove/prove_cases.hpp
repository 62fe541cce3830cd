#pragma once

#include "runtime/algorithms/registry.hpp"
#include "tools/prove/prove_options.hpp"

namespace ringmaster {

/// The world sizes to prove: those asked for, or 1 to 64 and, but for `deterministic`, samples up to 1024.
std::vector<uint32_t> prove_worlds(const prove_options& opts);

/// What to prove of a kind in one world. What is not asked for is drawn up here, the more the smaller the world: counts
/// with and without elements for each rank, v-variants, roots, and chunks of 0, 1 and 3 elements.
///
///   ranks     counts of the whole               of a block      v-variants            roots             chunks
///   1 to 8    0, 1, 2, n-1, n, n+1, 3n+2, 1000  0, 1, 2, 3, 10  uneven, one non-zero  all               0, 1, 3
///   to 16     the same                          the same        the same              0, 1, n/2, n-1    0, 1, 3
///   to 64     1, n-1, n+1, 1000                 1, 3            uneven                0, 1, n/2, n-1    0
///   above     n+1                               2               uneven, to 256        n/3               0
///
/// ALL_TO_ALL, which has n^2 uneven counts, has them up to 64 ranks.
/// What goes by hosts is proved for every one of these on one host and, where no more than 24 ranks are asked, on
/// others: two and three ranks each, as far as they go, one rank alone and the others together, ranks in turns on two
/// hosts and on three, in two thirds and one, and each on one of its own; roots on both sides of them. SEND_RECV: for
/// each root the ranks before and after it and the one opposite. Only requests that `check_request` accepts; what it
/// refuses is in `refused`, the last one.
std::vector<plan_request> prove_cases(const algorithm& of, uint32_t world_size, const prove_options& opts,
                                      caf::error& refused);

} // namespace ringmaster
