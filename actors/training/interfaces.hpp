#pragma once

#include "actors/training/type_ids.hpp"

#include <caf/typed_actor.hpp>

namespace ringmaster::training {

/// RANK: runs a strategy's program for one rank, computes in its device's memory, and reports its communications.
using rank_actor = caf::typed_actor<
  // TRAINER: run a step; results of communications; give the step up.
  caf::reacts_to<step_order>, caf::reacts_to<exchange_ended>, caf::reacts_to<room_wanted>, caf::reacts_to<part_found>,
  caf::replies_to<step_abandoned>::with<uint64_t>,
  // TRAINER: free the memory, and exit.
  caf::replies_to<run_over>::with<uint64_t>,
  // TRAINER: the address of a part, for another rank; its bytes, for a rank with other parts, or for a checkpoint.
  caf::replies_to<part_sought>::with<uint64_t>, caf::replies_to<part_request>::with<byte_block>,
  // INTERNAL: continue to compute, if the step has not been given up meanwhile.
  caf::reacts_to<atom::resume, uint64_t>>;

/// TRAINER: runs a training step after step, and continues with the ranks that are left when others are lost.
using trainer_actor = caf::typed_actor<
  // RANK: it is ready; its communications; the result of a step.
  caf::reacts_to<rank_ready>, caf::reacts_to<std::vector<rank_arrival>>, caf::reacts_to<room_found>,
  caf::reacts_to<part_wanted>, caf::reacts_to<rank_ended>, caf::reacts_to<rank_failed>, caf::reacts_to<rank_alive>,
  caf::reacts_to<rank_leaving>,
  // CLIENT: stop before the last step.
  caf::reacts_to<atom::expire>,
  // CLIENT: there is room for reports again.
  caf::reacts_to<atom::resume>,
  // INTERNAL: check limits; start the next attempt after one that was given up.
  caf::reacts_to<atom::tick>, caf::reacts_to<atom::resume, uint64_t>>;

} // namespace ringmaster::training
