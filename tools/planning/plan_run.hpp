#pragma once

#include "runtime/training/simulated/simulator.hpp"
#include "runtime/training/strategies/strategies.hpp"
#include "runtime/training/transformer/plans/planner.hpp"

#include <memory>
#include <string>

namespace ringmaster {

/// A strategy's run that a plan stands for, on the ranks that stand for all (transformer_costs.hpp). Where the strategy
/// itself shares weights among data-parallel ranks in a pipeline, or mirrors stages, all of these. Context and experts
/// are in the costs.
class plan_run {
public:
  /// `asked` and `how` must outlive it.
  plan_run(const training::plan_question& asked, const training::parallel_setting& how);

  /// Why it cannot be simulated; empty: it can.
  std::string problem() const;
  /// Expected, a little high: each layer is on one stage.
  uint64_t operations() const;
  /// Errors: as of `simulate`.
  caf::expected<training::training_outcome> simulate(bool with_events, const training::training_watch& watch) const;

  const training::known_strategy& strategy() const { return *which_; }
  const training::model& trained() const { return trained_; }
  const training::mesh& shape() const { return shape_; }
  const training::parallel_setting& how() const { return how_; }
  std::unique_ptr<training::cost_model> costs() const;

private:
  const training::plan_question& asked_;
  const training::parallel_setting& how_;
  const training::known_strategy* which_ = nullptr;
  training::model trained_;
  training::mesh shape_;
};

} // namespace ringmaster
