#pragma once

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

} // namespace ringmaster
