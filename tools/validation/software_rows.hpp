#pragma once

#include "planner/estimates/iteration_estimate.hpp"
#include "planner/systems/pretraining_software.hpp"
#include "tools/console/page_format.hpp"

#include <caf/expected.hpp>

#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace ringmaster {

/// A published training, and the software that ran it.
struct software_row {
  const training::software_generation* software = nullptr;
  training::language_model trained;
  training::gpu_system on; ///< With the newest software's constants.
  training::training_setting how;
  double seconds = 0; ///< Of an iteration.
};

/// Rows of bench/data/pretraining_by_software. Errors: io_error; corrupt, with the file and the line.
caf::expected<std::vector<software_row>> read_software_rows(const std::string& file);

/// Seconds of an iteration under its software, whose products reach that part of the newest software's rate.
double estimate_of(const software_row& x, double products);

/// The part under which rows of one software are best explained: soft-L1 of log(estimate / published) from 4 % on.
double fit_products(std::span<const software_row> rows);

/// The same of the row's software by the other trainings: all rows but those of this row's model. Where there are
/// none, the constant that is known.
double products_without(std::span<const software_row> rows, const software_row& left_out);

/// Each row, how far its estimate is off, and how far it is by a constant that was fitted without its model.
void print_software_rows(std::FILE* out, std::span<const software_row> rows, const page_format& page);

} // namespace ringmaster
