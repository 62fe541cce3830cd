#pragma once

#include "runtime/schedule/collective.hpp"
#include "runtime/simulation/network.hpp"

#include <functional>
#include <span>

namespace ringmaster {

/// A step as the simulator keeps it, in 16 bytes instead of a schedule's 72: a ring of 4096 ranks has 67 million.
struct compact_step {
  uint64_t elements;
  uint32_t activity; ///< Which it belongs to.
  uint32_t round : 28;
  uint32_t what : 3; ///< An `action`.
  uint32_t then : 1;
};

/// A message, which is the step of its sender and the step of its receiver, or what one rank does by itself.
struct activity {
  static constexpr uint32_t none = UINT32_MAX;

  picoseconds time = -1; ///< When the first of the two steps began; then when the transfer or work did.
  uint32_t source_step = none;
  uint32_t destination_step = none; ///< The same for what a rank does by itself.
  uint32_t channel = none;          ///< For what a rank does by itself: its rank.
  uint32_t cause = none;            ///< The activity whose end let this one start.

  bool is_local() const { return source_step == destination_step; }
};

/// Everything that one rank sends to another one.
struct channel {
  uint32_t source = 0, destination = 0;
};

/// The steps of all ranks, with the k-th send from a to b tied to the k-th receive of b from a. Flat arrays, since a
/// simulation walks over each of them once and little else costs time.
struct message_graph {
  std::vector<compact_step> steps;   ///< Rank by rank.
  std::vector<uint32_t> first_steps; ///< By rank, and the end of the last.
  std::vector<activity> activities;  ///< Messages by channel, then what ranks do by themselves.
  std::vector<channel> channels;     ///< Sorted by source and destination.

  uint32_t world_size() const { return static_cast<uint32_t>(first_steps.size() - 1); }
};

/// Gives the schedule of a rank; asked once for each of them, in order.
using schedule_source = std::function<caf::expected<schedule>(uint32_t rank)>;

/// Errors: those of `source`; invalid_argument where sends and receives do not fit each other, naming the ranks, for a
/// peer that does not exist, and for more than 2^30 steps or 2^28 rounds.
caf::expected<message_graph> link_schedules(uint32_t world_size, const schedule_source& source);

} // namespace ringmaster
