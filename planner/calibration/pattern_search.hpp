#pragma once

#include <functional>
#include <span>
#include <vector>

namespace ringmaster::training {

/// Positive numbers near `start` under which `cost` is the least that is found: sweeps over them with steps of their
/// logarithms that are halved, and further along where a whole sweep went (Hooke and Jeeves 1961). Deterministic.
std::vector<double> pattern_search(std::vector<double> start,
                                   const std::function<double(std::span<const double>)>& cost);

} // namespace ringmaster::training
