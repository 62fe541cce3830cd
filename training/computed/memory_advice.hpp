#pragma once

#include "training/computed/step_world.hpp"

namespace ringmaster::training {

/// What would leave a rank of this world more memory, of the choices that this model allows: "with a larger
/// --device.memory-bytes or under zero3, fsdp or 1f1b, which shard what takes it". `of_samples`: the value that did not
/// fit grows with the micro-batch.
std::string memory_advice(const training_job& job, const step_world& world, bool of_samples);

} // namespace ringmaster::training
