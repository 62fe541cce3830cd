#pragma once

#include "tools/tune/tune_fit.hpp"

namespace ringmaster {

/// "36.7 us".
std::string seconds_text(double seconds);

/// A table: what was measured beside what the constants make of it; under each group's size which algorithm would be
/// picked, and whether it was the fastest of those measured, or within 20 % of it. Errors: as of `estimate_of`.
caf::expected<std::string> comparison_text(const std::vector<cost_sample>& samples, const options& values,
                                           uint32_t cores);

/// How well the samples are explained.
std::string fit_text(const tuned_costs& x);

} // namespace ringmaster
