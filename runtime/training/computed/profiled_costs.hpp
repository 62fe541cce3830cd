#pragma once

#include "runtime/training/computed/training_job.hpp"
#include "runtime/training/simulated/simulator.hpp"

#include <map>
#include <tuple>

namespace ringmaster::training {

/// What a step of a job costs on this machine, from one that was measured: seconds and bytes. An operation takes what
/// it has taken at the median of those alike, of the same layer and as many samples; a communication what it took the
/// rank that came last, since others wait for that one; what only prepares is counted to what came before it. One that
/// the step had not is scaled from one of fewer or more samples.
class profiled_costs final : public cost_model {
public:
  /// `measured`: the events of all ranks of a step. The job outlives it.
  profiled_costs(const training_job& job, const std::vector<event>& measured);

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
