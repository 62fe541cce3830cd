#pragma once

#include "client/training/training_run.hpp"
#include "tools/train/run_options.hpp"
#include "training/measured/profiled_costs.hpp"

namespace ringmaster {

/// What a step takes as the simulator has it.
struct run_predictions {
  training::predicted_step measured_costs; ///< By its own costs, all of them measured.
  std::optional<double> tuned_seconds;     ///< With communications as section [costs] has them, in one process.
  bool are_usual_costs = false;            ///< Which are the defaults, of another machine.
};

/// What is about to be trained, in two lines.
std::string beginning_text(const run_options& x, const training::run_settings& what);
/// Of a loss, the mean of natural logarithms.
double in_bits(double nats);
/// Of texts, the bits a byte that simple counts make of what the model is tried on; else nothing.
std::optional<double> yardstick_of(const training::run_settings& what);
/// The same for people; else empty.
std::string yardstick_text(std::optional<double> bits);
/// Of a step that has just been done, and those before it: its loss, and how fast the latest of them were. It looks at
/// so many: that smooths it, and a change is soon seen.
inline constexpr size_t steps_of_line = 21;
std::string step_text(const std::map<uint64_t, training::step_report>& steps, uint64_t step, uint64_t batch,
                      bool of_text);
/// Of an epoch, a line.
std::string epoch_text(const training::epoch_report& x, uint64_t epochs, bool of_text);
/// What the simulator makes of the steps that were profiled.
std::string prediction_text(const training::run_outcome& x, const run_predictions& by);
/// How it ended.
std::string ending_text(const training::run_outcome& x, double seconds);
/// All of it as an object; `yardstick`: yardstick_of; `predicted` where steps were profiled.
std::string run_json(const run_options& x, const training::run_settings& what, std::optional<double> yardstick,
                     const training::run_outcome& found, const std::map<uint64_t, training::step_report>& steps,
                     const std::vector<std::string>& notes, double seconds,
                     const std::optional<run_predictions>& predicted, const caf::error& why = {});

} // namespace ringmaster
