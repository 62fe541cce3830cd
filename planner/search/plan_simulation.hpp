#pragma once

#include "planner/plans/plan_search.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include <memory>
#include <optional>

namespace ringmaster::training {

/// A shorter step, and a longer one, whose difference is what each further micro-batch of the plan adds: between them
/// the pipeline is full, and a micro-batch takes as long as the next.
struct steady_steps {
  uint32_t shorter = 0, longer = 0; ///< Micro-batches.
};

/// What a plan takes, simulated operation by operation.
struct simulated_plan {
  double seconds = 0;
  double memory_bytes = 0; ///< Of the rank that holds the most.
  uint64_t operations = 0;
  uint32_t micro_batches = 0; ///< Of these; the plan may have more, which are then as the last of them.

  bool fits(const gpu_system& on) const { return memory_bytes <= on.room_bytes(); }
};

/// The run of the strategy that a plan stands for, on the ranks that stand for all (transformer_costs.hpp): two of the
/// tensor-parallel ranks and two of the data-parallel ones. Context and experts are in the costs.
class plan_simulation {
public:
  /// `asked` and `how` must outlive it.
  plan_simulation(const plan_question& asked, const parallel_setting& how);

  /// Whether it can be simulated. Errors: invalid_argument, with the reason.
  caf::error problem() const;
  /// Expected, a little high: each layer is on one stage.
  uint64_t operations() const { return operations_of(how_.micro_batches()); }
  /// Errors: as of `simulate`.
  caf::expected<training_outcome> simulate(bool with_events, const training_watch& watch) const {
    return simulate(how_.micro_batches(), with_events, watch);
  }

  /// Nothing: the plan has too few micro-batches for its step to be told from two shorter ones.
  std::optional<steady_steps> steady() const;
  /// Expected, of both steps.
  uint64_t operations(const steady_steps& x) const { return operations_of(x.shorter) + operations_of(x.longer); }
  /// The whole step. Errors: as of `simulate`.
  caf::expected<simulated_plan> simulate_all(const training_watch& watch) const;
  /// The step from two shorter ones. `watch` counts the operations of both. Errors: as of `simulate`.
  caf::expected<simulated_plan> simulate_steady(const steady_steps& x, const training_watch& watch) const;

  const known_strategy& strategy() const { return *which_; }
  const model& trained() const { return trained_; }
  const mesh& shape() const { return shape_; }
  const parallel_setting& how() const { return how_; }
  std::unique_ptr<cost_model> costs() const;

private:
  uint64_t operations_of(uint32_t micro_batches) const;
  caf::expected<training_outcome> simulate(uint32_t micro_batches, bool with_events, const training_watch& watch) const;

  const plan_question& asked_;
  const parallel_setting& how_;
  const known_strategy* which_ = nullptr;
  model trained_;
  mesh shape_;
};

} // namespace ringmaster::training
