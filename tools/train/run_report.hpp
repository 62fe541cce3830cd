#pragma once

#include "client/training/training_run.hpp"
#include "tools/train/run_options.hpp"

namespace ringmaster {

/// What is about to be trained, in two lines.
std::string beginning_text(const run_options& x, const training::run_settings& what);
/// Of an epoch, a line.
std::string epoch_text(const training::epoch_report& x, uint64_t epochs);
/// How it ended.
std::string ending_text(const training::run_outcome& x, double seconds);
std::string run_json(const run_options& x, const training::run_settings& what, const training::run_outcome& found,
                     const std::vector<training::step_report>& steps, const std::vector<std::string>& notes,
                     double seconds);

} // namespace ringmaster
