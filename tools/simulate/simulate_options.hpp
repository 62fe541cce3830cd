#pragma once

#include "runtime/simulation/network.hpp"
#include "tools/options/collective_options.hpp"

namespace ringmaster {

/// The options of `ringmaster simulate`.
struct simulate_options {
  collective_options collective;
  network net;
  std::optional<int64_t> intra_latency;
  std::optional<double> intra_bandwidth;
  bool deterministic = false; ///< Floats are added in rank order.
  bool json = false;
  bool wide = false; ///< The table shows all columns.
  std::string trace; ///< A file; empty: none.

  void add_to(option_table& table);
  /// Checks that do not depend on the number of ranks. Errors: invalid_argument.
  caf::error check();
};

/// Places the ranks on hosts and checks what depends on their number. Errors: invalid_argument.
caf::error check_for_ranks(simulate_options& opts, uint32_t ranks);

} // namespace ringmaster
