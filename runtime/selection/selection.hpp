#pragma once

#include "runtime/algorithms/registry.hpp"

#include <functional>
#include <limits>
#include <optional>
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

/// The costs of operations of a group of devices; the defaults are the simulator's.
struct cost_constants {
  double latency_s = 5e-6; ///< From a message's last byte on the wire to its arrival.
  double bandwidth = 50e9; ///< Bytes per second in each direction.
  double reduction_rate = std::numeric_limits<double>::infinity(); ///< Bytes per second and rank.
  double message_overhead_s = 0; ///< For each message of the rank or host that has the most.
  double round_overhead_s = 0;
  double operation_s = 0; ///< For an operation of any algorithm.
  /// Between ranks of one host, if the request has the hosts.
  double host_latency_s = 1e-6;
  double host_bandwidth = 300e9;
};

/// Seconds, by their causes.
struct time_estimate {
  double latency_s = 0, transfer_s = 0, reduction_s = 0, overhead_s = 0;

  double total_s() const { return latency_s + transfer_s + reduction_s + overhead_s; }
};

struct candidate {
  const algorithm* which = nullptr;
  algorithm_cost cost{};
  time_estimate time{};
  uint64_t chunk = 0;                  ///< The request's, or that of `chunk_for`.
  std::optional<host_work> on_hosts{}; ///< If ranks are on several hosts; the time is estimated from it.
};

/// The kind's algorithms that accept the request, fastest first according to `estimate`; at equal times in the order of
/// `algorithms()`. The rank of the request does not matter. Errors: invalid_argument for a kind without algorithms, and
/// for requests that `check_request` or all algorithms refuse; those of `estimate`.
caf::expected<std::vector<candidate>> sorted_candidates(
  proto::CollectiveKind kind, const plan_request& request,
  const std::function<caf::expected<candidate>(const algorithm&)>& estimate);

/// The same on a network: a uniform one, or one with two levels if the request has the ranks' hosts.
/// Above 256 ranks, and for algorithms with very many steps, all messages count as messages between hosts. The size of
/// pieces is that of `chunk_for`. The time of reductions is that of the root, or of rank 0, which is the busiest rank
/// of symmetric algorithms and trees. Errors: those of `sorted_candidates`.
caf::expected<std::vector<candidate>> candidates(proto::CollectiveKind kind, const plan_request& request,
                                                 uint64_t element_bytes, const cost_constants& constants);

/// The best size of a piece for the network, in elements, a power of two. Large pieces wait for each other's bytes,
/// small ones for latencies, so the size is halved as long as the estimate improves. If that saves nothing and the
/// algorithm reduces, the size is latency x bandwidth: one piece then travels while another is reduced, which estimates
/// do not include. Except for algorithms by hosts, all messages count as messages between hosts. A size in the request
/// is returned. 0 if the algorithm's default is the same, or if it has no pieces. The rank of the request does not
/// matter. Errors: those of `cost_of` and `plan`.
caf::expected<uint64_t> chunk_for(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                  const cost_constants& constants);

/// The first of the candidates.
caf::expected<candidate> select_algorithm(proto::CollectiveKind kind, const plan_request& request,
                                          uint64_t element_bytes, const cost_constants& constants);

/// A range of sizes in which the same algorithm is selected.
struct selection_range {
  uint64_t elements_min = 0; ///< In the sense of `count_for_size`; up to the next range.
  const algorithm* which = nullptr;
};

/// The algorithms selected for 1, 2, 4, ... elements, up to `elements_max`; the request's count does not matter.
/// Errors: those of `candidates`.
caf::expected<std::vector<selection_range>> selection_by_size(proto::CollectiveKind kind, plan_request request,
                                                              uint64_t element_bytes, const cost_constants& constants,
                                                              uint64_t elements_max);

} // namespace ringmaster
