#pragma once

#include "runtime/simulation/message_graph.hpp"

#include <cmath>
#include <span>
#include <string>

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

/// A part of the longest chain of activities, in which each waits for the one before it.
struct path_part {
  enum class kind : uint8_t { message, reduction, copy };

  kind what = kind::message;
  uint32_t source = 0, destination = 0;
  uint32_t round = 0; ///< The source's.
  uint64_t bytes = 0;
  picoseconds start = 0;
  picoseconds transfer = 0; ///< The time for which ports, or the rank, were occupied.
  picoseconds latency = 0;  ///< 0 if the next part waited for a port only.
};

/// The chain from time 0 to the end of activity `last` at `end`, without gaps.
std::vector<path_part> critical_path_to(const timeline& times, uint32_t last, picoseconds end);

/// The sums over a chain.
struct path_summary {
  uint64_t messages = 0, reductions = 0, copies = 0;
  picoseconds transfer = 0; ///< Of messages.
  picoseconds latency = 0;
  picoseconds work = 0; ///< Of reductions and copies.
};

path_summary summary_of(const std::vector<path_part>& path);

/// The progress of a rank: the steps of its current round are [first, next).
struct rank_progress {
  uint32_t first = 0, next = 0;
  uint32_t open = 0; ///< Steps of the round that have not ended.
  picoseconds ended_at = 0;
  uint32_t ended_by = activity::none; ///< The activity of the round that ended last.
};

/// For a deadlock: a sentence with the broken links that ranks want to use, and which ranks wait for which.
std::string who_waits(const timeline& times, std::span<const rank_progress> ranks);

} // namespace ringmaster
