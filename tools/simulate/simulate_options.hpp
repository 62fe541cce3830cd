#pragma once

#include "runtime/simulation/network.hpp"
#include "tools/options/collective_options.hpp"

namespace ringmaster {

/// What `ringmaster simulate` is told.
struct simulate_options {
  collective_options collective;
  network net;
  std::optional<int64_t> intra_latency;
  std::optional<double> intra_bandwidth;
  bool deterministic = false; ///< Floats are added in rank order.
  bool json = false;
  std::string trace; ///< A file; empty: none.

  void add_to(option_table& table);
  /// What there is to say before it is known how many ranks there are. Errors: invalid_argument.
  caf::error check();
};

/// Connects so many ranks, and says whether they can be traced as told. Errors: invalid_argument.
caf::error check_for_ranks(simulate_options& opts, uint32_t ranks);

} // namespace ringmaster
