#pragma once

#include "runtime/training/computed/training_job.hpp"
#include "runtime/training/simulated/simulator.hpp"

#include <map>
#include <tuple>

namespace ringmaster::training {

/// What a step of a job costs on this machine, from some that were measured: seconds and bytes. Those of middle length
/// count, and of them the mean of operations alike, of the same layer and as many samples: a step is a sum of them. A
/// communication takes from when all are there to when the last one can go on; what only prepares is counted to what
/// came before it. One that the steps had not is scaled from one of fewer or more samples.
class profiled_costs final : public cost_model {
public:
  /// `steps`: of each, the events of all ranks; a collective's `peer` is the first rank of its group. The job outlives
  /// it.
  profiled_costs(const training_job& job, const std::vector<std::vector<event>>& steps);

  std::string_view name() const override { return "profiled"; }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return true; }
  uint64_t memory_of(const value_tag& x) const override;
  double time_of(const pending& x, uint32_t world_size) const override;
  double mfu_percent(const model&, uint32_t, double) const override { return -1; }

private:
  /// What, of which layer, of how many samples; of communication of any number.
  using kind = std::tuple<op, uint32_t, uint64_t>;

  const training_job& job_;
  std::map<kind, double> seconds_;
};

/// A measured step as a simulated one is told: the ranks' times and the end, from their events, whose times begin at 0.
training_outcome outcome_of(std::vector<event> measured, uint32_t ranks);

} // namespace ringmaster::training
