#pragma once

#include "training/computed/training_job.hpp"

#include <span>

namespace ringmaster::training {

/// How ranks divide a step where a job can lose ranks: tp, dp and shard_ranks may change from step to step, everything
/// else is the job's.
struct step_setting {
  parallel_setting parallel{}; ///< Only tp, dp and shard_ranks are set.
  bool stands_in = false;      ///< The strategy that stands in for the job's trains.

  friend bool operator==(const step_setting&, const step_setting&) = default;
};

step_setting setting_of(const model& m);
model with_setting(model m, const step_setting& x);
/// "2 tensor-parallel x 2 data-parallel"; empty: no degree is given.
std::string text_of(const step_setting& x);

/// By which strategy they train.
const known_strategy& strategy_for(const training_job& job, const step_setting& x);

/// Ranks that run a step, and how they lie.
struct step_world {
  uint32_t ranks = 0;
  step_setting sides;

  friend bool operator==(const step_world&, const step_world&) = default;
};

/// Of a rank's, the fewest samples that it works on at once, where so many train: for layers that cannot learn of one.
uint64_t fewest_at_once(const training_job& job, const step_world& x);

/// Whether its strategy and its layers let such ranks train.
bool can_train(const training_job& job, const step_world& x);

/// Of so many ranks that are left, as many as train: as the job is told, where that is possible of any number of them;
/// else in fewer data-parallel groups; else with fewer ranks that share a layer, or the model; else the same by what
/// stands in for its strategy. 0 ranks: nobody can. `too_small`: worlds whose ranks had no room for a step; nor have
/// fewer ranks that lie alike.
step_world step_world_of(const training_job& job, uint32_t there, std::span<const step_world> too_small = {});

/// The model as these ranks' strategy sees it: what a rank works on at once may follow from how many they are.
model step_shape(const training_job& job, const step_world& x);

} // namespace ringmaster::training
