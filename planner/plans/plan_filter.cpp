#include "planner/plans/plan_filter.hpp"

#include <algorithm>

namespace ringmaster::training {

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
