#pragma once

#include "actors/training/type_ids.hpp"

#include <caf/typed_actor.hpp>

namespace ringmaster::training {

/// RANK: runs a strategy's program for one rank, computes in its device's memory, and shows what goes to others.
using rank_actor = caf::typed_actor<
  // TRAINER: run a step; what it waited for; give it up.
  caf::reacts_to<step_order>, caf::reacts_to<exchange_ended>, caf::reacts_to<room_wanted>, caf::reacts_to<part_found>,
  caf::replies_to<step_abandoned>::with<uint64_t>,
  // TRAINER: give your memory back, and end.
  caf::replies_to<run_over>::with<uint64_t>,
  // TRAINER: for another rank, where it lies; for one with other parts, or for a checkpoint, its bytes.
  caf::replies_to<part_sought>::with<uint64_t>, caf::replies_to<part_request>::with<byte_block>,
  // INTERNAL: go on computing, if the step has not been given up meanwhile.
  caf::reacts_to<atom::resume, uint64_t>>;

/// TRAINER: has the ranks train together, step after step, and goes on with those that are left.
using trainer_actor = caf::typed_actor<
  // RANK: I can begin; what I come to; what came of a step.
  caf::reacts_to<rank_ready>, caf::reacts_to<std::vector<rank_arrival>>, caf::reacts_to<room_found>,
  caf::reacts_to<part_wanted>, caf::reacts_to<rank_ended>, caf::reacts_to<rank_failed>, caf::reacts_to<rank_alive>,
  caf::reacts_to<rank_leaving>,
  // CLIENT: end before the end.
  caf::reacts_to<atom::expire>,
  // CLIENT: there is room again for what you have to tell.
  caf::reacts_to<atom::resume>,
  // INTERNAL: look whether anything has happened since; go on behind an attempt that was given up.
  caf::reacts_to<atom::tick>, caf::reacts_to<atom::resume, uint64_t>>;

} // namespace ringmaster::training
