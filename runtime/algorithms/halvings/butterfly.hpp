#pragma once

#include "runtime/algorithms/parts/algorithm_cost.hpp"

namespace ringmaster {

inline constexpr std::string_view butterfly_all_reduce_cost
  = "log2 N rounds, each rank sends log2 N x count elements; 2 rounds more where N is not a power of two";

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

} // namespace ringmaster
