#pragma once

#include "training/computed/training_job.hpp"

#include <span>

namespace ringmaster::training {

/// How ranks divide a step of a job that can lose ranks: tp, dp and shard_ranks may change from step to step,
/// everything else is the job's.
struct step_setting {
  parallel_setting parallel{}; ///< Only tp, dp and shard_ranks are set.
  bool stands_in = false;      ///< The substitute of the job's strategy is used.

  friend bool operator==(const step_setting&, const step_setting&) = default;
};

step_setting setting_of(const model& m);
model with_setting(model m, const step_setting& x);
/// "2 tensor-parallel x 2 data-parallel"; empty: nothing is configured.
std::string text_of(const step_setting& x);

/// The strategy that is used: the job's, or its substitute.
const known_strategy& strategy_for(const training_job& job, const step_setting& x);

/// The number of ranks that run a step, and their parallel groups.
struct step_world {
  uint32_t ranks = 0;
  step_setting sides;

  friend bool operator==(const step_world&, const step_world&) = default;
};

/// The smallest micro-batch of any rank of this world: some layers cannot learn from a single sample.
uint64_t fewest_at_once(const training_job& job, const step_world& x);

/// Whether the job's strategy and layers can be trained by this world.
bool can_train(const training_job& job, const step_world& x);

/// The largest world that `available` ranks can form: with the configured sizes if any number of ranks allows that;
/// else with fewer data-parallel groups; else with fewer ranks that share a layer, or the model; else the same with the
/// substitute of the job's strategy. 0 ranks: none is possible. `too_small`: worlds whose ranks ran out of memory;
/// fewer ranks with the same sizes would, too.
step_world step_world_of(const training_job& job, uint32_t available, std::span<const step_world> too_small = {});

/// The model as the strategy of this world sees it: its micro-batch may follow from the number of ranks.
model step_shape(const training_job& job, const step_world& x);

} // namespace ringmaster::training
