#pragma once

#include "planner/estimates/parallel_setting.hpp"

#include <string>

namespace ringmaster {

/// "15T", "2.5B", "800": tokens as --tokens takes them.
std::string amount_text(double x);
/// A whole number with its thousands apart: "2,112,959".
std::string grouped_text(double x);

/// "TP8 CP1 DP4 PP2, micro-batch 1, interleaved, VPP4, SP, zero1, recompute full": what plans can differ in, in short.
std::string short_text(const training::parallel_setting& how);
/// "fsdp", "hsdp 8", "zero1".
std::string sharding_of(const training::parallel_setting& how);

} // namespace ringmaster
