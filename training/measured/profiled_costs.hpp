#pragma once

#include "runtime/selection/process_costs.hpp"
#include "training/computed/training_job.hpp"
#include "training/simulated/simulator.hpp"

#include <caf/expected.hpp>

#include <compare>
#include <functional>
#include <map>
#include <span>

namespace ringmaster::training {

/// What a communication takes once all its ranks are there, in seconds.
using communication_times = std::function<double(const pending&)>;

/// What a step of a job costs on this machine, from one that was measured: seconds and bytes. An operation takes what
/// that of the same rank, layer and samples took, for what is held up now here and now there makes others wait, which
/// means would not; a communication, from when all are there to when the last one can go on, or, aside, to when it is
/// over, by its layer and samples; what only prepares, and what held the rank up in between or before it began, is
/// counted to the operation beside it. One that the step had not takes the mean of those alike, of as many samples, or
/// is scaled from one of fewer or more.
class profiled_costs final : public cost_model {
public:
  /// `measured`: the events of all ranks of a step; a collective's `peer` is the first rank of its group.
  /// `communications`: what all but sends take in place of what was measured, in seconds. The job outlives it.
  profiled_costs(const training_job& job, const std::vector<event>& measured, communication_times communications = {});

  std::string_view name() const override { return "profiled"; }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return true; }
  uint64_t memory_of(const value_tag& x) const override;
  double time_of(const pending& x, uint32_t world_size) const override;
  double mfu_percent(const model&, uint32_t, double) const override { return -1; }

private:
  static constexpr uint64_t any_first = UINT64_MAX;

  /// Operations that are alike. A communication is rank 0's in place of all, and of 0 samples.
  struct kind {
    op what;
    uint32_t rank, layer;
    uint64_t first;   ///< Of its samples, or any_first.
    uint64_t samples; ///< How many.

    auto operator<=>(const kind&) const = default;
  };

  const training_job& job_;
  communication_times communications_;
  std::map<kind, double> seconds_;
};

/// A measured step in the form of a simulated one: the ranks' times and the end, from their events, whose times begin
/// at 0.
training_outcome outcome_of(std::vector<event> measured, uint32_t ranks);

/// The lower one of two; of none 0.
double median_of(std::vector<double> values);

/// The median of a step's time and those of some ten steps before and after it: what steps took then, on a machine
/// whose speed changes from one part of a run to the next, without what this step alone met with. `step` is its index,
/// of one that there is.
double median_around(std::span<const double> seconds, size_t step);

/// Which steps of a run are measured: the first, and every n-th after it.
struct steps_to_measure {
  uint64_t first = 0, every = 1;
};

/// Some fifteen of [first, end), of all times, for what else the machine does changes; `first` begins an epoch of so
/// many steps. Not always the same ones of each epoch: beside its first ones the model of the one before is tried.
steps_to_measure spread_steps(uint64_t first, uint64_t end, uint64_t an_epoch);

struct measured_step {
  std::vector<event> events; ///< From time 0 on.
  double seconds = 0;        ///< Of the whole step.
  double around = 0;         ///< What steps took then: see median_around. 0: what is usual.
};

/// What a step takes, as the simulator has it.
struct predicted_step {
  size_t of = 0; ///< Whose costs they are, by index: the step whose simulated time is the middle one, beside what steps
                 ///< took around it.
  training_outcome measured, simulated;
  double seconds = 0; ///< Of a step in all, when steps take what is usual: the simulated operations, and what the
                      ///< measured one took before and after them.
};

/// Simulates each of the steps, of which there is one at least, with its own costs: what disturbed one of them does not
/// count, nor how fast the machine was then. `usual`: what a step of the run takes, in seconds. `communications`: as
/// `profiled_costs` has it. Errors: those of `simulate`.
caf::expected<predicted_step> predict(const training_job& job, uint32_t ranks, std::span<const measured_step> steps,
                                      double usual, const communication_times& communications = {});

/// What the communications of a job take whose ranks are all in one process, by the constants that `ringmaster tune`
/// measures: a call that the ranks wait for, and the joint operation that moves their data. The job outlives it.
communication_times tuned_communications(const training_job& job, const process_constants& machine);

} // namespace ringmaster::training
