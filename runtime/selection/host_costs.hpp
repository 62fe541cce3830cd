#pragma once

#include "runtime/algorithms/registry.hpp"

#include <vector>

namespace ringmaster {

/// The work of an operation whose ranks are on several hosts, counted round by round. A round with messages between
/// hosts counts as `across` and lasts as long as the busiest host's network card, which its ranks share for each
/// direction. Other rounds count as `within` and last as long as the busiest rank.
struct host_work {
  struct level {
    double latencies = 0; ///< Rounds with messages.
    double bytes = 0;     ///< Sent one after the other.
  };
  level across, within;
  double messages = 0; ///< Between hosts, sent or received by all ranks of the busiest host.

  /// The factors of the constants: operation, latency and byte across, message, latency and byte within.
  std::vector<double> features() const;
};

/// Whether ranks are on several hosts, at least two on one, and few enough that planning all of them is fast.
bool has_two_levels(const plan_request& request);
/// Whether planning all ranks of one algorithm is fast: pipelines have a step for each piece.
bool can_be_planned(const algorithm_cost& cost, const plan_request& request);

/// Plans every rank. The request has the ranks' hosts. Errors: those of `plan`.
caf::expected<host_work> work_on_hosts(const algorithm& which, const plan_request& request, uint64_t element_bytes);

} // namespace ringmaster
