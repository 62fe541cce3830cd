#pragma once

#include "training/strategies/strategies.hpp"

namespace ringmaster::training {

// A world of groups that share each layer, and are data parallel to each other: m.tensor ranks each, or, if that
// is not given, world size / m.data.

mesh tensor_parallel_shape(const model& m, uint32_t world_size);
caf::error check_tensor_parallel(const model& m, uint32_t world_size);

} // namespace ringmaster::training
