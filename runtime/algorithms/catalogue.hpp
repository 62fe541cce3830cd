#pragma once

#include "runtime/algorithms/registry.hpp"

namespace ringmaster {

/// The algorithms that come with Ringmaster, by kind, in the order in which they are listed to people.
std::vector<algorithm> algorithm_catalogue();

} // namespace ringmaster
