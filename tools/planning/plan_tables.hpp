#pragma once

#include "planner/estimates/training_setting.hpp"
#include "planner/search/plan_outcome.hpp"
#include "tools/console/page_format.hpp"

#include <string>
#include <vector>

namespace ringmaster {

// Where lines are too long, tables of plans leave out these columns, in this order: closed GB, closed s, MFU %, SP, vs
// first, recompute, sharding, MBS, VPP.

/// What the heads of the columns stand for.
std::string legend_of(const page_format& page);

/// The best plans, each as simulated, and the table's footnotes.
std::string best_table(const training::plan_outcome& x, const page_format& page);

/// Plans by their closed forms.
std::string closed_form_table(const std::vector<training::planned>& plans, const page_format& page);
/// The same, and the memory that they lack there.
std::string too_large_table(const std::vector<training::planned>& plans, const training::gpu_system& on,
                            const page_format& page);

/// The best plans with the error of their times, which are ties with the first, and the frameworks that run them; and
/// what the error is from.
std::string error_table(const training::plan_outcome& x, const page_format& page);

/// "15T", "2.5B", "800": tokens as --tokens takes them.
std::string amount_text(double x);
/// A whole number with its thousands apart: "2,112,959".
std::string grouped_text(double x);

/// "TP8 CP1 DP4 PP2, micro-batch 1, interleaved, VPP4, SP, zero1, recompute full": what plans can differ in, in short.
std::string short_text(const training::training_setting& how);
/// "fsdp", "hsdp 8", "zero1".
std::string sharding_of(const training::training_setting& how);

} // namespace ringmaster
