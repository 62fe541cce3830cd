#pragma once

#include "planner/plans/planner.hpp"

#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// "15T", "2.5B", "800": tokens as --tokens takes them.
std::string amount_text(double x);
/// A whole number with its thousands apart: "2,112,959".
std::string grouped_text(double x);

/// "TP8 CP1 DP4 PP2, micro-batch 1, interleaved, VPP4, SP, zero1, recompute full": what plans can differ in, in short.
std::string short_text(const training::parallel_setting& how);
/// "fsdp", "hsdp 8", "zero1".
std::string sharding_of(const training::parallel_setting& how);

/// Where an iteration's seconds go; those hidden behind other work count not.
std::vector<std::pair<std::string, double>> seconds_by_part(const training::iteration_estimate& x);
/// What is hidden behind other work.
std::vector<std::pair<std::string, double>> hidden_by_part(const training::iteration_estimate& x);
/// What a rank's bytes are for.
std::vector<std::pair<std::string, double>> bytes_by_part(const training::memory_parts& x);

} // namespace ringmaster
