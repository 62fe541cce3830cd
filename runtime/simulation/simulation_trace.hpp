#pragma once

#include "runtime/simulation/simulation.hpp"

namespace ringmaster {

inline constexpr uint32_t traced_ranks_max = 64;

/// A simulation as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing, in the JSON Trace Event Format. A rank
/// is a process with three tracks: its outgoing port, its incoming port and its arithmetic. A slice lasts as long as it
/// occupies the track, and its arguments have its end. An arrow leads from each message's sender to its receiver.
std::string trace_of(std::span<const simulated_activity> activities, uint32_t world_size);

} // namespace ringmaster
