#pragma once

#include "training/simulated/simulator.hpp"
#include <ringmaster/strategy/group.hpp>

namespace ringmaster {

/// Of a step of a world of that shape, with its events, what the first rank of each stage has done, as ranks 0, 1, ...:
/// the others of a stage do the same with other columns or samples. Sums over all ranks stay as they are.
training::training_outcome first_of_stages(const training::training_outcome& found, const training::mesh& shape);

} // namespace ringmaster
