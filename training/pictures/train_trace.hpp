#pragma once

#include "training/simulated/simulator.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// Bytes of a trace that nobody has asked to be larger: what a browser still opens at once.
inline constexpr uint64_t trace_bytes_usual = 64 << 20;

/// A step, simulated or measured, with its events.
struct traced_step {
  std::string_view name; ///< "ranks"
  const training::training_outcome* found = nullptr;
  const training::cost_model* costs = nullptr;
  std::string_view row = "rank"; ///< What its tracks are called.
};

/// JSON Trace Event Format: a process a step, in it a track a rank, its memory as a counter, an arrow from each send to
/// its receive. Errors: out_of_range where it would have more bytes.
caf::expected<std::string> trace_of(std::span<const traced_step> steps, uint64_t bytes_max = trace_bytes_usual);
/// Of one.
caf::expected<std::string> trace_of(const training::training_outcome& found, const training::cost_model& costs,
                                    uint64_t bytes_max = trace_bytes_usual);

} // namespace ringmaster
