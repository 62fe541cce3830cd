#pragma once

#include "client/training/training_run.hpp"
#include "tools/train/run_options.hpp"
#include "training/measured/profiled_costs.hpp"

namespace ringmaster {

/// The time of a step, as simulated.
struct run_predictions {
  training::predicted_step measured_costs; ///< By its own costs, all of them measured.
  std::optional<double> tuned_seconds;     ///< With communications as section [costs] has them, in one process.
  bool are_usual_costs = false;            ///< Which are the defaults, of another machine.
};

/// What will be trained, in two lines.
std::string beginning_text(const run_options& x, const training::run_settings& what);
/// The loss, a mean of natural logarithms, in bits.
double in_bits(double nats);
/// For texts, the bits a byte that a model of simple counts needs for the held-out data; else nothing.
std::optional<double> yardstick_of(const training::run_settings& what);
/// The same as text; else empty.
std::string yardstick_text(std::optional<double> bits);
/// A progress line: the loss of the latest step, and the mean speed of the latest steps. Few enough that a change shows
/// soon, and enough to be smooth.
inline constexpr size_t steps_of_line = 21;
std::string step_text(const std::map<uint64_t, training::step_report>& steps, uint64_t step, uint64_t batch,
                      bool of_text);
/// One line for an epoch.
std::string epoch_text(const training::epoch_report& x, uint64_t epochs, bool of_text);
/// The steps that were profiled, compared with the simulator.
std::string prediction_text(const training::run_outcome& x, const run_predictions& by);
/// The end of the run.
std::string ending_text(const training::run_outcome& x, double seconds);
/// All of it as a JSON object. `yardstick`: as yardstick_of returns it; `predicted`: if steps were profiled.
std::string run_json(const run_options& x, const training::run_settings& what, std::optional<double> yardstick,
                     const training::run_outcome& found, const std::map<uint64_t, training::step_report>& steps,
                     const std::vector<std::string>& notes, double seconds,
                     const std::optional<run_predictions>& predicted, const caf::error& why = {});

} // namespace ringmaster
