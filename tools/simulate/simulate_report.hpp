#pragma once

#include "runtime/algorithms/registry.hpp"
#include "runtime/simulation/simulation.hpp"

#include <optional>
#include <string>

namespace ringmaster {

/// What is simulated: an algorithm, or what a file has.
struct simulated_subject {
  std::string name;
  proto::CollectiveKind kind;
  plan_request request;
  uint64_t rounds = 0;
  std::optional<algorithm_cost> cost{}; ///< Of an algorithm, as it is.
  schedule_source source{};
  bool in_rank_order = false; ///< As a deterministic communicator has it.
};

/// Its simulation, with what is said of it.
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

/// What one prints of a simulation by itself, with `net` that it ran on.
std::string report_of(const simulation_outcome& x, const network& net);
/// A line of a table of several, and what stands above it.
std::string row_of(const simulation_outcome& x);
std::string header_of(const simulated_subject& first, uint64_t element_bytes);
/// A line of JSON.
std::string json_of(const simulation_outcome& x);

} // namespace ringmaster
