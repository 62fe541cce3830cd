#pragma once

#include "runtime/simulation/critical_path.hpp"
#include "runtime/simulation/message_graph.hpp"

#include <functional>
#include <span>

namespace ringmaster {

/// What came of schedules in virtual time.
///
/// A message of b bytes can start when its sender has begun to send and its receiver to receive. It starts when every
/// port on its way is free, occupies them all for b / bandwidth of the slowest link on the way, and has ended for both
/// sides another latency later, which occupies nothing. Where several can start, the one goes first whose two steps had
/// begun first, and of the same moment the one that comes first in its sender's round; while a message waits for one
/// port, others may pass through its other ports. What a rank reduces or copies follows each other likewise. A rank
/// begins a round when it has ended the one before; nobody waits for the other ranks' rounds.
struct simulation {
  static constexpr double alike_share = 0.05;

  picoseconds time = 0; ///< Until the last rank has ended.
  uint64_t steps = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0; ///< Of all messages.
  std::string busiest_port{};
  double busiest_share = 0; ///< The part of the time in which it was occupied.
  uint32_t ports_used = 0;
  uint32_t ports_alike = 0; ///< Of these, with the busiest one: occupied as long as it, to within `alike_share`.
  /// Links or ranks of one class.
  struct resource_class {
    uint32_t used = 0;
    bool alike = true; ///< All of them are occupied for the same time, to within `alike_share`: none is to blame.
  };
  resource_class links;         ///< All that carry messages.
  resource_class links_between; ///< Of these, the links between hosts.
  resource_class links_within;  ///< The links within a host.
  resource_class arithmetic;    ///< Ranks that spend time on reductions or copies.
  std::vector<path_part> critical_path{};
  /// Empty: all ranks ended. Otherwise nothing could move any more, and this says who waits for whom; the other values
  /// are of what happened until then.
  std::string stuck{};
};

/// A message, or what a rank computed: `reduce` or `copy`, also where it reduced a message.
struct simulated_activity {
  action what = action::recv; ///< The receiver's.
  uint32_t source = 0, destination = 0;
  uint32_t round = 0; ///< The source's.
  uint64_t bytes = 0;
  picoseconds start = 0;
  picoseconds ports_free = 0; ///< From here it no longer occupies anything.
  picoseconds end = 0;
};

/// Told of every activity when its times are known; of arithmetic only where it takes time or is a step of its own.
using simulation_observer = std::function<void(const simulated_activity&)>;

/// Told now and then how many of the steps have been simulated.
using simulation_watch = std::function<void(uint64_t done, uint64_t steps)>;

/// Plans and simulates one rank after the other, so that no more than one schedule is in memory at once. Needs 28 bytes
/// a step. Errors: those of `source`, `check_network` and `link_schedules`; out_of_range for more than 53 days.
caf::expected<simulation> simulate(uint32_t world_size, const schedule_source& source, const network& net,
                                   uint64_t element_bytes, const simulation_observer& observer = {},
                                   const simulation_watch& watch = {});

/// The same for schedules that are there, one for each rank.
caf::expected<simulation> simulate(std::span<const schedule> schedules, const network& net, uint64_t element_bytes,
                                   const simulation_observer& observer = {});

} // namespace ringmaster
