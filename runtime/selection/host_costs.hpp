#pragma once

#include "runtime/algorithms/registry.hpp"

#include <vector>

namespace ringmaster {

/// What an operation consists of where its ranks lie on several hosts. It is counted round by round: where anything of
/// a round goes across, the round is one across and lasts as long as the busiest host's network card, which all its
/// ranks share for each direction; otherwise it is one within, and lasts as long as the busiest rank.
struct host_work {
  struct level {
    double latencies = 0; ///< Rounds with messages.
    double bytes = 0;     ///< One after the other.
  };
  level across, within;
  double messages = 0; ///< Across, sent or received by the busiest host, whose ranks share this, too.

  /// What the constants are multiplied with: of an operation, a latency across and a byte, a message, and a latency and
  /// a byte within.
  std::vector<double> features() const;
};

/// Whether ranks lie on several hosts, and at least two on one; not so many that their plans cannot be made in a
/// moment.
bool has_two_levels(const plan_request& request);
/// The same of one algorithm's: pipelines have a step for each piece.
bool can_be_planned(const algorithm_cost& cost, const plan_request& request);

/// Plans every rank. The request says where ranks lie. Errors: as of `plan`.
caf::expected<host_work> work_on_hosts(const algorithm& which, const plan_request& request, uint64_t element_bytes);

} // namespace ringmaster
