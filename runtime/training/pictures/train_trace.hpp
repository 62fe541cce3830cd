#pragma once

#include "runtime/training/simulated/simulator.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>

namespace ringmaster {

/// Bytes of a trace that nobody has asked to be larger: what a browser still opens at once.
inline constexpr uint64_t trace_bytes_usual = 64 << 20;

/// JSON Trace Event Format: a track a rank, its memory as a counter, an arrow from each send to its receive.
/// Errors: out_of_range where it would have more bytes.
caf::expected<std::string> trace_of(const training::training_outcome& found, const training::cost_model& costs,
                                    uint64_t bytes_max = trace_bytes_usual);

} // namespace ringmaster
