#pragma once

#include "planner/plans/found_plans.hpp"
#include "planner/plans/plan_filter.hpp"

#include <array>

namespace ringmaster::training {

/// What is tried of each division of the devices: every micro-batch, recomputation, schedule, number of chunks and
/// sharding.
class shape_search {
public:
  /// Both must outlive it.
  shape_search(const plan_question& asked, found_plans& found);

  void try_shape(const training_setting& shape);

private:
  void try_schedules();
  /// The same for schedules in which experts' positions move during other micro-batches' work.
  void try_hiding(pipeline_schedule schedule, uint32_t chunks);
  void try_sharding(pipeline_schedule schedule, uint32_t chunks);
  /// Each micro-batch's gradients scattered, and weights gathered, on all stages: no software trains so by itself
  /// (DeepSpeed refuses it), and the closed form is rough there. It is searched if it is named.
  bool goes_with_pipelines(uint32_t zero) const;
  bool takes(recomputation again) const;
  /// Whether the framework can run the current setting with weights shared by `shard` ranks.
  bool runs(uint32_t shard) const;
  bool is_asked_for(pipeline_schedule schedule, uint32_t chunks) const;
  const std::array<bool, shardings.size()>& taken_of(pipeline_schedule schedule) const {
    return taken_[how_.pp == 1 ? 0 : 1][static_cast<size_t>(schedule)];
  }
  /// The plan by FSDP or HSDP with `ranks` that share weights. Nothing hides dispatch there.
  planned sharded(uint32_t ranks);
  bool fits(const planned& x) const;

  const language_model& m_;
  const gpu_system& on_;
  const plan_filter& filter_;
  found_plans& found_;
  /// By the filter: on one stage, on several.
  std::array<std::array<std::array<bool, shardings.size()>, pipeline_schedules>, 2> taken_{};
  training_setting how_;
  micro_batch_times times_;
};

} // namespace ringmaster::training
