#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ringmaster::training {

/// The lower one of two; of none 0.
double median_of(std::vector<double> values);

/// The median of a step's time and those of some ten steps before and behind it: what steps took then, on a machine
/// whose speed changes from one part of a run to the next, without what this step alone met with. `step` is its index.
double median_around(std::span<const double> seconds, size_t step);

} // namespace ringmaster::training
