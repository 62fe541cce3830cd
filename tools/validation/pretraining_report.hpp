#pragma once

#include "tools/console/page_format.hpp"
#include "tools/validation/pretraining_rows.hpp"

#include <cstdio>
#include <span>

namespace ringmaster {

/// How the constants' `values` explain published trainings: dense models, those with experts, all; each for rows that
/// were fitted to (the first, third, ... of the file) and those that were not, or for all together.
void print_pretraining(std::FILE* out, const pretraining_rows& rows, std::span<const double> values, bool split,
                       const page_format& page);
/// The same of further rows of that source, none of which was fitted to; and of these with those of `rows` that are
/// held out.
void print_further(std::FILE* out, const pretraining_rows& rows, const pretraining_rows& further,
                   std::span<const double> values, const page_format& page);
/// Every row.
void print_pretraining_rows(std::FILE* out, const pretraining_rows& rows, std::span<const double> values, bool split,
                            const page_format& page);
/// Each of these rows by constants that are fitted to the others: what to expect of rows that no fit has seen.
void print_left_out(std::FILE* out, const std::vector<training::published_training>& fitted, const page_format& page);
/// Every row beside the best plan for its model, GPUs and batch, in closed form: how many times as long it took.
void print_beside_best(std::FILE* out, const pretraining_rows& rows);
/// The constants.
void print_pretraining_constants(std::FILE* out, std::span<const double> values);

/// A row as `plan` takes it: with the newest software, its graphs, and dispatch hidden where that is faster.
training::published_training as_planned(training::published_training x);
/// Seconds of an iteration by the best plan that fits, whatever the row's own way; 0: none does.
double best_plan_of(const training::published_training& x);
/// The rows that are fitted to.
std::vector<training::published_training> fitted_rows(const pretraining_rows& rows);

} // namespace ringmaster
