#pragma once

#include "runtime/schedule/collective.hpp"
#include "tools/options/option_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

/// What `ringmaster prove` is asked to do.
struct prove_options {
  std::optional<proto::CollectiveKind> kind; ///< None: all.
  std::string algorithm = "all";
  std::vector<uint64_t> ranks;  ///< World sizes; empty: as `prove_cases` likes.
  std::vector<uint64_t> counts; ///< Elements; empty: as `prove_cases` likes.
  std::vector<uint64_t> roots;  ///< Empty: as `prove_cases` likes.
  std::vector<uint64_t> hosts;  ///< As `collective_options` has them; empty: as `prove_cases` likes.
  bool deterministic = false;   ///< The schedules that add in rank order.
  uint64_t seed = 1;
  uint32_t jobs = 2;
  std::string schedule; ///< Prove this file; empty: algorithms.
  std::string write;    ///< Write the schedules to this file; empty: prove them.

  void add_to(option_table& table);
  /// Errors: invalid_argument, naming the options that do not go together.
  caf::error check() const;
};

} // namespace ringmaster
