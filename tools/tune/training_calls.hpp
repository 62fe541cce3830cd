#pragma once

#include "messages/interfaces.hpp"
#include "tools/tune/tune_fit.hpp"

#include <caf/actor_system.hpp>

namespace ringmaster {

inline constexpr uint64_t training_memory = 8u << 20; ///< Of a device, at the least.

/// What communications take the two ranks of a training in this process, once both are there: an all_reduce, which
/// comes when everybody has slept while the ranks computed; an all_gather and a reduce_scatter, of which one comes
/// behind the other; and what goes from one rank to the next. Each the median over the steps of a short training. The
/// configuration needs the messages of actors/training/type_ids.hpp. Errors: those of `training::train`.
caf::expected<std::vector<cost_sample>> measure_training_calls(caf::actor_system& system,
                                                               const coordinator_actor& coordinator);

} // namespace ringmaster
