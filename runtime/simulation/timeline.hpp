#pragma once

#include "runtime/simulation/message_graph.hpp"

#include <cmath>

namespace ringmaster {

/// The times of all activities of a simulation.
struct timeline {
  message_graph graph;
  std::vector<network_path> paths; ///< By channel.
  uint64_t element_bytes = 1;
  double reduction_ps_per_byte = 0;
  double copy_ps_per_byte = 0;
  /// By activity, only if reductions take time: when the receiver had reduced a message, and which work it waited for
  /// (or the message itself).
  std::vector<picoseconds> reduced_at{};
  std::vector<uint32_t> reduction_cause{};

  uint64_t bytes_of(const activity& x) const { return graph.steps[x.source_step].elements * element_bytes; }
  action receiver_action(const activity& x) const { return static_cast<action>(graph.steps[x.destination_step].what); }
  bool reduces_in_no_time() const { return reduced_at.empty(); }

  /// The time for which ports are occupied.
  picoseconds transfer_time(const activity& x) const {
    return rounded(static_cast<double>(bytes_of(x)) * paths[x.channel].picoseconds_per_byte);
  }
  /// The duration of the receiver's reduction, or of local work.
  picoseconds work_time(const activity& x) const {
    auto rate = receiver_action(x) == action::copy ? copy_ps_per_byte : reduction_ps_per_byte;
    return rounded(static_cast<double>(bytes_of(x)) * rate);
  }
  picoseconds arrival(const activity& x) const { return x.time + transfer_time(x) + paths[x.channel].latency; }

  /// To whole picoseconds, at most simulated_time_max, which ends the simulation with an error.
  static picoseconds rounded(double time) {
    return time < static_cast<double>(simulated_time_max) ? std::llrint(time) : simulated_time_max;
  }
};

} // namespace ringmaster
