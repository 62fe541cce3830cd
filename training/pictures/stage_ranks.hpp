#pragma once

#include "training/simulated/simulator.hpp"
#include <ringmaster/strategy/group.hpp>

namespace ringmaster {

/// The outcome with only the first rank of each stage, renumbered 0, 1, ...: the other ranks of a stage do the same
/// with other columns or samples. Sums over all ranks stay the same.
training::training_outcome first_of_stages(const training::training_outcome& found, const training::mesh& shape);

} // namespace ringmaster
