#pragma once

#include "runtime/simulation/message_graph.hpp"
#include "runtime/simulation/timeline.hpp"

#include <functional>
#include <span>

namespace ringmaster {

/// The result of schedules in virtual time.
///
/// - A message of b bytes can start when its sender has begun to send and its receiver to receive.
/// - It starts when every port on its way is free, occupies them all for b / bandwidth of the slowest link on the way,
/// and
///   ends for both sides one latency later. The latency occupies no port.
/// - Of several messages that can start, the one whose two steps began first goes first, and at equal times the first
/// one
///   of its sender's round. While a message waits for one port, others may use its other ports.
/// - A rank reduces and copies one block at a time.
/// - A rank begins a round when it has ended the previous one. It does not wait for the rounds of other ranks.
struct simulation {
  static constexpr double alike_share = 0.05;

  picoseconds time = 0; ///< Until the last rank has ended.
  uint64_t steps = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0; ///< Of all messages.
  std::string busiest_port{};
  double busiest_share = 0; ///< The part of the time for which it was occupied.
  uint32_t ports_used = 0;
  uint32_t ports_alike = 0; ///< Of these, occupied as long as the busiest one to within `alike_share`.
  /// Links or ranks of one class.
  struct resource_class {
    uint32_t used = 0;
    bool alike = true; ///< All are occupied for the same time to within `alike_share`.
  };
  resource_class links;         ///< All that carry messages.
  resource_class links_between; ///< Of these, the links between hosts.
  resource_class links_within;  ///< The links within a host.
  resource_class arithmetic;    ///< Ranks that spend time on reductions or copies.
  std::vector<path_part> critical_path{};
  /// Empty if all ranks ended. Otherwise a deadlock: which ranks wait for which; the other values describe the time
  /// until then.
  std::string stuck{};
};

/// A message, or work of a rank (`reduce` or `copy`), including the reduction of a message.
struct simulated_activity {
  action what = action::recv; ///< The receiver's.
  uint32_t source = 0, destination = 0;
  uint32_t round = 0; ///< The source's.
  uint64_t bytes = 0;
  picoseconds start = 0;
  picoseconds ports_free = 0; ///< When it stops occupying ports.
  picoseconds end = 0;
};

/// Called with each activity; with arithmetic only if it takes time or is a step of its own.
using simulation_observer = std::function<void(const simulated_activity&)>;

/// Called at intervals with the number of simulated steps.
using simulation_watch = std::function<void(uint64_t done, uint64_t steps)>;

/// Plans one rank after the other, so only one schedule is in memory at a time. Needs 28 bytes per step. Errors: those
/// of `source`, `check_network` and `link_schedules`; out_of_range for more than 53 days.
caf::expected<simulation> simulate(uint32_t world_size, const schedule_source& source, const network& net,
                                   uint64_t element_bytes, const simulation_observer& observer = {},
                                   const simulation_watch& watch = {});

/// The same for given schedules, one for each rank.
caf::expected<simulation> simulate(std::span<const schedule> schedules, const network& net, uint64_t element_bytes,
                                   const simulation_observer& observer = {});

} // namespace ringmaster
