#pragma once

#include "runtime/simulation/simulation.hpp"

namespace ringmaster {

inline constexpr uint32_t traced_ranks_max = 64;

/// A simulation as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing, in the JSON Trace Event Format. A rank
/// is a process with a track for what occupies its way out, one for its way in and one for its arithmetic. A slice
/// lasts as long as it occupies the track, and says when it ended; an arrow leads from each way out to the way in.
std::string trace_of(std::span<const simulated_activity> activities, uint32_t world_size);

} // namespace ringmaster
