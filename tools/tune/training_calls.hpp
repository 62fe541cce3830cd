#pragma once

#include "messages/interfaces.hpp"
#include "tools/tune/tune_fit.hpp"

#include <caf/actor_system.hpp>

namespace ringmaster {

inline constexpr uint64_t training_memory = 8u << 20; ///< The minimum of a device.

/// Measures the communication of two ranks of a training in this process, once both have arrived: an all_reduce after
/// the ranks have computed, an all_gather and a reduce_scatter back to back, and a send to the next rank. Each is the
/// median over the steps of a short training. The configuration needs the messages of actors/training/type_ids.hpp.
/// Errors: as of `training::train`.
caf::expected<std::vector<cost_sample>> measure_training_calls(caf::actor_system& system,
                                                               const coordinator_actor& coordinator);

} // namespace ringmaster
