#pragma once

#include "training/computed/step_world.hpp"

namespace ringmaster::training {

/// What would leave a rank of such a world more memory, of what this model lets one choose: "with a larger
/// --device.memory-bytes or under zero3, fsdp or 1f1b, which shard what takes it". `of_samples`: what had no room has a
/// part for each sample that is worked on at once.
std::string memory_advice(const training_job& job, const step_world& world, bool of_samples);

} // namespace ringmaster::training
