#pragma once

#include "training/simulated/simulator.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// The default limit: a size that a browser still opens at once.
inline constexpr uint64_t trace_bytes_usual = 64 << 20;

/// A step, simulated or measured, with its events.
struct traced_step {
  std::string_view name; ///< "ranks"
  const training::training_outcome* found = nullptr;
  const training::cost_model* costs = nullptr;
  std::string_view row = "rank"; ///< The name of its tracks.
};

/// A trace for Perfetto in the JSON Trace Event Format: a process for each step with a track for each rank, its memory
/// as a counter, and an arrow from each send to its receive. Errors: out_of_range for more than `bytes_max`.
caf::expected<std::string> trace_of(std::span<const traced_step> steps, uint64_t bytes_max = trace_bytes_usual);
/// The same for one step.
caf::expected<std::string> trace_of(const training::training_outcome& found, const training::cost_model& costs,
                                    uint64_t bytes_max = trace_bytes_usual);

} // namespace ringmaster
