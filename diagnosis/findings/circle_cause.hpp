#pragma once

#include "diagnosis/findings/wait_graph.hpp"

#include <optional>

namespace ringmaster::diagnosis {

/// The cause if ranks wait for each other in a circle, so that none of them is at its end: ranks called process groups
/// in different orders, or one called the wrong group. The ranks whose call differs from their earlier steps are the
/// cause; without such steps, those in the call to which the fewest of its ranks have come. None: there is no circle.
std::optional<cause> circle_cause(const wait_graph& graph);

} // namespace ringmaster::diagnosis
