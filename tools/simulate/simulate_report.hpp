#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/simulation/simulation.hpp"
#include "tools/console/streamed_table.hpp"

#include <optional>
#include <string>

namespace ringmaster {

/// What is simulated: an algorithm, or the schedules of a file.
struct simulated_subject {
  std::string name;
  proto::CollectiveKind kind;
  plan_request request;
  uint64_t rounds = 0;
  std::optional<algorithm_cost> cost{}; ///< Of an algorithm.
  schedule_source source{};
  bool in_rank_order = false; ///< As on a deterministic communicator.
};

/// The result of a simulation.
struct simulation_outcome {
  const simulated_subject& which;
  uint64_t element_bytes = 1;
  simulation result;
  uint64_t scratch = 0; ///< Elements, at the rank that needs most.

  uint64_t size() const; ///< Bytes.
  /// Bytes a second.
  double bandwidth() const;
  double bus_bandwidth() const;
};

/// The report of a single simulation on the network.
std::string report_of(const simulation_outcome& x, const network& net);
/// A table of several simulations. A narrow page leaves out messages, rounds, sent and algorithm bw, in this order.
class simulation_table {
public:
  explicit simulation_table(const page_format& page);

  /// `first`: one of the simulations.
  std::string head(const simulated_subject& first, uint64_t element_bytes) const;
  std::string row(const simulation_outcome& x) const;

private:
  page_format page_;
  streamed_table table_;
};
/// A line of JSON.
std::string json_of(const simulation_outcome& x);

} // namespace ringmaster
