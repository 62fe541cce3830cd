#pragma once

#include "runtime/selection/host_costs.hpp"

#include <functional>
#include <limits>
#include <optional>

namespace ringmaster {

/// What a group of devices takes for what; the defaults are the simulator's.
struct cost_constants {
  double latency_s = 5e-6; ///< From a message's last byte on the wire to its arrival.
  double bandwidth = 50e9; ///< Bytes a second, each way.
  double reduction_rate = std::numeric_limits<double>::infinity(); ///< Bytes a second of one rank.
  double message_overhead_s = 0; ///< Of each message, at the rank or the host that has most of them.
  double round_overhead_s = 0;
  double operation_s = 0; ///< Of the operation, whatever the algorithm.
  /// Between ranks of one host, where the request says which those are.
  double host_latency_s = 1e-6;
  double host_bandwidth = 300e9;
};

/// Seconds, as a sum of what takes them.
struct time_estimate {
  double latency_s = 0, transfer_s = 0, reduction_s = 0, overhead_s = 0;

  double total_s() const { return latency_s + transfer_s + reduction_s + overhead_s; }
};

struct candidate {
  const algorithm* which = nullptr;
  algorithm_cost cost{};
  time_estimate time{};
  uint64_t chunk = 0;                  ///< As `plan_request` has it: the request's, or `chunk_for`.
  std::optional<host_work> on_hosts{}; ///< Where ranks lie on several hosts: then the time is of this.
};

/// The kind's algorithms that take the request as `estimate` sees them, cheapest first; equals stay in the order of
/// `algorithms()`. The rank of the request does not matter. Errors: invalid_argument for a kind without algorithms, for
/// what `check_request` refuses, and for what all of them refuse; and the estimate's.
caf::expected<std::vector<candidate>> sorted_candidates(
  proto::CollectiveKind kind, const plan_request& request,
  const std::function<caf::expected<candidate>(const algorithm&)>& estimate);

/// The same on a network: a uniform one, or, where the request says which ranks lie on which host, one with two levels
/// (host_costs.hpp). Above 256 ranks, and for an algorithm of very many steps, it is estimated as if everything went
/// across. What is cut into pieces is cut as `chunk_for` has it. Reductions, where they take time, are those of the
/// root, or of rank 0, which is what symmetric algorithms and trees have at their busiest rank. Errors: as of
/// `sorted_candidates`.
caf::expected<std::vector<candidate>> candidates(proto::CollectiveKind kind, const plan_request& request,
                                                 uint64_t element_bytes, const cost_constants& constants);

/// Elements of a piece that the network asks for, a power of two: fewer pieces mostly wait for each other's bytes, more
/// of them for latencies, so it is cut as long as the estimate becomes less. Where that saves nothing but the algorithm
/// adds, what is under way at a time, latency x bandwidth: one piece travels while another is added, which no estimate
/// sees. But for an algorithm by hosts it is estimated as if everything went across. A request that says how large they
/// are has that; 0 where the algorithm's own default comes to the same, or it has no pieces. The rank of the request
/// does not matter. Errors: as of `cost_of` and `plan`.
caf::expected<uint64_t> chunk_for(const algorithm& which, const plan_request& request, uint64_t element_bytes,
                                  const cost_constants& constants);

/// The first of the candidates.
caf::expected<candidate> select_algorithm(proto::CollectiveKind kind, const plan_request& request,
                                          uint64_t element_bytes, const cost_constants& constants);

/// A range of sizes in which the same algorithm is selected.
struct selection_range {
  uint64_t elements_min = 0; ///< As `count_for_size` takes them; goes up to the next range's.
  const algorithm* which = nullptr;
};

/// Which algorithm is selected for 1, 2, 4, ... elements, up to `elements_max`; the request's own count does not
/// matter. Errors: as of `candidates`.
caf::expected<std::vector<selection_range>> selection_by_size(proto::CollectiveKind kind, plan_request request,
                                                              uint64_t element_bytes, const cost_constants& constants,
                                                              uint64_t elements_max);

} // namespace ringmaster
