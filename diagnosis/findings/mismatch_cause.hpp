#pragma once

#include "diagnosis/findings/wait_graph.hpp"

namespace ringmaster::diagnosis {

/// Which ranks are the cause of calls that do not match, and what they did: another collective, size, type or root,
/// another order, a skipped call, or a call on the wrong process group. The majority of ranks is right; without one,
/// the ranks' earlier steps and groups of the same description decide; else it is ambiguous.
cause mismatch_cause(const wait_graph& graph, const waited_call& x);

} // namespace ringmaster::diagnosis
