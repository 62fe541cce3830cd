#pragma once

#include "runtime/schedule/collective.hpp"
#include "runtime/simulation/network.hpp"

#include <functional>
#include <span>

namespace ringmaster {

/// A step in 16 bytes instead of a schedule's 72: a ring of 4096 ranks has 67 million steps.
struct compact_step {
  uint64_t elements;
  uint32_t activity; ///< The activity of the step.
  uint32_t round : 28;
  uint32_t what : 3; ///< An `action`.
  uint32_t then : 1;
};

/// A message, which consists of a step of its sender and one of its receiver, or a local step of one rank.
struct activity {
  static constexpr uint32_t none = UINT32_MAX;

  picoseconds time = -1; ///< The start of the first of the two steps; later that of the transfer or work.
  uint32_t source_step = none;
  uint32_t destination_step = none; ///< Equal to source_step for local work.
  uint32_t channel = none;          ///< For local work: the rank.
  uint32_t cause = none;            ///< The activity whose end this one waited for.

  bool is_local() const { return source_step == destination_step; }
};

/// All messages from one rank to another.
struct channel {
  uint32_t source = 0, destination = 0;
};

/// The steps of all ranks. The k-th send from a to b belongs to the k-th receive of b from a. Arrays are flat, since
/// the time of a simulation is mostly that of reading them.
struct message_graph {
  std::vector<compact_step> steps;   ///< Rank by rank.
  std::vector<uint32_t> first_steps; ///< By rank, and the end of the last one.
  std::vector<activity> activities;  ///< Messages by channel, then local work.
  std::vector<channel> channels;     ///< Sorted by source and destination.

  uint32_t world_size() const { return static_cast<uint32_t>(first_steps.size() - 1); }
};

/// Returns the schedule of a rank; called once for each rank, in order.
using schedule_source = std::function<caf::expected<schedule>(uint32_t rank)>;

/// Errors: those of `source`; invalid_argument, with the ranks, if sends and receives do not match, if a peer does not
/// exist, and for more than 2^30 steps or 2^28 rounds.
caf::expected<message_graph> link_schedules(uint32_t world_size, const schedule_source& source);

} // namespace ringmaster
