#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/collective.hpp"
#include "tools/options/option_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// The options of `ringmaster prove`.
struct prove_options {
  std::optional<proto::CollectiveKind> kind; ///< None: all.
  std::string algorithm = "all";
  std::vector<uint64_t> ranks;  ///< World sizes; empty: chosen by `prove_cases`.
  std::vector<uint64_t> counts; ///< Elements; empty: chosen by `prove_cases`.
  std::vector<uint64_t> roots;  ///< Empty: chosen by `prove_cases`.
  std::vector<uint64_t> hosts;  ///< As in `collective_options`; empty: chosen by `prove_cases`.
  bool deterministic = false;   ///< The schedules that add in rank order.
  uint64_t seed = 1;
  uint32_t jobs = 2;
  bool wide = false;    ///< Tables show all columns.
  std::string schedule; ///< Prove this file; empty: algorithms.
  std::string write;    ///< Write the schedules to this file; empty: prove them.

  void add_to(option_table& table);
  /// Errors: invalid_argument, for options that exclude each other.
  caf::error check() const;
};

/// The world sizes to prove: the given ones, or 1 to 64 and, unless `deterministic`, samples up to 1024.
std::vector<uint32_t> prove_worlds(const prove_options& opts);

/// The requests to prove in a world. Parameters that are not given are chosen here, more of them in smaller worlds:
/// counts with and without elements for each rank, v-variants, roots, and chunks of 0, 1 and 3 elements.
///
///   ranks     counts of the whole               of a block      v-variants            roots             chunks
///   1 to 8    0, 1, 2, n-1, n, n+1, 3n+2, 1000  0, 1, 2, 3, 10  uneven, one non-zero  all               0, 1, 3
///   to 16     the same                          the same        the same              0, 1, n/2, n-1    0, 1, 3
///   to 64     1, n-1, n+1, 1000                 1, 3            uneven                0, 1, n/2, n-1    0
///   above     n+1                               2               uneven, to 256        n/3               0
///
/// ALL_TO_ALL, which has n^2 uneven counts, has them up to 64 ranks.
/// Hierarchical algorithms are proved for each of these on one host and, up to 24 ranks, on other layouts: hosts of two
/// and of three ranks, one rank alone and the others together, ranks interleaved on two and on three hosts, two thirds
/// and one third, and a host for each rank; with roots on both sides of the borders. SEND_RECV: for each root the ranks
/// before and after it and the opposite one. Only requests that `check_request` accepts; `refused` has the last
/// refusal.
std::vector<plan_request> prove_cases(const algorithm& of, uint32_t world_size, const prove_options& opts,
                                      caf::error& refused);

} // namespace ringmaster
