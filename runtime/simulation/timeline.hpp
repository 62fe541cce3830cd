#pragma once

#include "runtime/simulation/message_graph.hpp"

#include <cmath>

namespace ringmaster {

/// When everything happened in a simulation: the activities' times, and what they took.
struct timeline {
  message_graph graph;
  std::vector<network_path> paths; ///< By channel.
  uint64_t element_bytes = 1;
  double reduction_ps_per_byte = 0;
  double copy_ps_per_byte = 0;
  /// By activity, only where reductions take time: when the receiver had reduced a message, and whose work it had to
  /// wait for; the message itself where there was none.
  std::vector<picoseconds> reduced_at{};
  std::vector<uint32_t> reduction_cause{};

  uint64_t bytes_of(const activity& x) const { return graph.steps[x.source_step].elements * element_bytes; }
  action receiver_action(const activity& x) const { return static_cast<action>(graph.steps[x.destination_step].what); }
  bool reduces_in_no_time() const { return reduced_at.empty(); }

  /// How long the ports are occupied.
  picoseconds transfer_time(const activity& x) const {
    return rounded(static_cast<double>(bytes_of(x)) * paths[x.channel].picoseconds_per_byte);
  }
  /// How long the receiver's reduction takes, or what the rank does by itself.
  picoseconds work_time(const activity& x) const {
    auto rate = receiver_action(x) == action::copy ? copy_ps_per_byte : reduction_ps_per_byte;
    return rounded(static_cast<double>(bytes_of(x)) * rate);
  }
  picoseconds arrival(const activity& x) const { return x.time + transfer_time(x) + paths[x.channel].latency; }

  /// To whole picoseconds; too long for a simulation is cut to what is recognised as such.
  static picoseconds rounded(double time) {
    return time < static_cast<double>(simulated_time_max) ? std::llrint(time) : simulated_time_max;
  }
};

} // namespace ringmaster
