#include "planner/plans/plan_filter.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

bool megatron_runs(const training_setting& how) {
  using enum pipeline_schedule;
  if (how.pp > 1 && how.schedule != one_f_one_b && how.schedule != interleaved_1f1b)
    return false; // it has the schedules 1f1b and interleaved
  if (how.pp > 1 && how.zero > 1)
    return false; // in pipelines it shares the optimizer's states alone
  if (how.offloads_activations)
    return false; // it does not off-load activations of a plan like this
  return true;
}

bool torchtitan_runs(const training_setting& how) {
  using enum pipeline_schedule;
  const bool shares = how.replicas() > 1;
  if (how.pp > 1 && (how.schedule == zb_h1 || how.schedule == zb_h2 || how.schedule == dualpipe))
    return false; // it has the schedules 1f1b, interleaved, gpipe and zb-v
  if (shares && how.shard_ranks == 0 && how.zero < 2)
    return false; // it shares weights by fsdp and hsdp, in pipelines as zero2 or zero3
  if (how.tp > 1 && !how.sequence_parallel)
    return false; // its tensor parallelism is sequence parallel
  if (how.attention != attention_kernel::flash)
    return false; // its attention is in tiles
  if (how.state_bytes != 12)
    return false; // its optimizer keeps states in float32
  if (how.offloads_states || how.offloads_activations)
    return false;                                 // it off-loads all weights and states, or nothing
  return how.computed_in != number_format::nvfp4; // which it does not have
}

} // namespace

std::string_view name_of(training_framework x) {
  return x == training_framework::any ? "any" : x == training_framework::megatron ? "megatron" : "torchtitan";
}

bool can_run(training_framework x, const training_setting& how) {
  return x == training_framework::any        ? true
         : x == training_framework::megatron ? megatron_runs(how)
                                             : torchtitan_runs(how);
}

namespace {

bool is_stage_of_zero(std::string_view name) {
  return name.starts_with("zero");
}

bool is_fully_sharded(std::string_view name) {
  return name.ends_with("sdp");
}

bool is_schedule(std::string_view name) {
  return std::ranges::find(shardings, name) == shardings.end();
}

} // namespace

bool plan_filter::takes(pipeline_schedule schedule, std::string_view sharding, bool on_one_stage) const {
  auto names = [](auto& list, std::string_view what) { return std::ranges::find(list, what) != list.end(); };
  const bool is_meant = !on_one_stage || names(only, name_of(schedule));
  if ((is_meant && names(excluded, name_of(schedule))) || names(excluded, sharding))
    return false;
  const bool any_schedule = std::ranges::any_of(only, is_schedule);
  const bool fits = !any_schedule || names(only, name_of(schedule));
  if (names(only, sharding))
    return fits || is_fully_sharded(sharding);
  if (std::ranges::any_of(only, is_stage_of_zero))
    return false;
  const bool alone = std::ranges::none_of(only, is_fully_sharded);
  return fits && (any_schedule ? is_stage_of_zero(sharding) : alone);
}

} // namespace ringmaster::training
