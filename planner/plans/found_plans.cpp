#include "planner/plans/found_plans.hpp"

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr size_t too_large_max = 3;
constexpr double front_slowest = 3; ///< Times the fastest: what is slower is on no front that is shown.
constexpr double nearly = 1e-9;

bool faster(const planned& a, const planned& b) {
  return std::pair{a.cost.seconds, a.cost.memory_bytes} < std::pair{b.cost.seconds, b.cost.memory_bytes};
}

/// Twice the context's ranks with twice the samples in a micro-batch are the same work, and the same memory.
bool same_work(const planned& a, const planned& b) {
  return a.how.context != b.how.context && std::abs(a.cost.seconds / b.cost.seconds - 1) < nearly
         && std::abs(a.cost.memory_bytes / b.cost.memory_bytes - 1) < nearly;
}

/// Keeps the first `most` in order; of those that are the same, the one that was found first.
void keep(std::vector<planned>& all, const planned& x, size_t most) {
  if (all.size() == most && !faster(x, all.back()))
    return;
  // Those that are the same stand side by side.
  auto at_least = [&](double times) {
    return std::ranges::lower_bound(all, x.cost.seconds * times, {}, [](auto& y) { return y.cost.seconds; });
  };
  if (std::any_of(at_least(1 - 2 * nearly), at_least(1 + 2 * nearly), [&](auto& y) { return same_work(x, y); }))
    return;
  all.insert(std::upper_bound(all.begin(), all.end(), x, faster), x);
  if (all.size() > most)
    all.pop_back();
}

} // namespace

memory_lack lack_of(const planned& x, const gpu_system& on) {
  const memory_lack result{std::max(0.0, x.cost.memory_bytes - on.room_bytes()),
                           std::max(0.0, x.cost.host_bytes - on.host_memory_bytes)};
  return result;
}

size_t found_plans::family_of(const parallel_setting& how) {
  return how.shard == 0                ? static_cast<size_t>(how.schedule)
         : how.shard == how.replicas() ? pipeline_schedules
                                       : pipeline_schedules + 1;
}

void found_plans::note(const planned& x) {
  ++all_.evaluated;
  if (!std::isfinite(x.cost.seconds) || !std::isfinite(x.cost.memory_bytes)) {
    ++all_.endless;
    return;
  }
  if (lack_of(x, on_).sum() > 0)
    return note_too_large(x);
  ++all_.fitting;
  keep(all_.best, x, count_);
  keep(families_[family_of(x.how)], x, 1);
  note_pareto(x);
}

void found_plans::note_too_large(const planned& x) {
  keep(all_.too_large, x, too_large_max);
  if (all_.smallest.empty() || lack_of(x, on_).sum() < lack_of(all_.smallest.front(), on_).sum())
    all_.smallest = {x};
}

/// The front is by memory, ascending; so by time, descending.
void found_plans::note_pareto(const planned& x) {
  auto& front = all_.pareto;
  auto at = std::partition_point(front.begin(), front.end(),
                                 [&](auto& y) { return y.cost.memory_bytes <= x.cost.memory_bytes; });
  if (at != front.begin() && std::prev(at)->cost.seconds <= x.cost.seconds)
    return;
  at = std::partition_point(front.begin(), front.end(),
                            [&](auto& y) { return y.cost.memory_bytes < x.cost.memory_bytes; });
  auto end = std::find_if(at, front.end(), [&](auto& y) { return y.cost.seconds < x.cost.seconds; });
  front.insert(front.erase(at, end), x);
}

void found_plans::add(const found_plans& x) {
  all_.evaluated += x.all_.evaluated;
  all_.fitting += x.all_.fitting;
  all_.endless += x.all_.endless;
  for (auto& each : x.all_.best)
    keep(all_.best, each, count_);
  for (size_t i = 0; i < families_.size(); ++i)
    for (auto& each : x.families_[i])
      keep(families_[i], each, 1);
  for (auto* lacking : {&x.all_.too_large, &x.all_.smallest})
    for (auto& each : *lacking)
      note_too_large(each);
  for (auto& each : x.all_.pareto)
    note_pareto(each);
}

transformer_plans found_plans::take() {
  auto result = std::move(all_);
  std::erase_if(result.too_large, [&](auto& x) { return !result.best.empty() && !faster(x, result.best.front()); });
  if (!result.best.empty())
    result.smallest.clear();
  for (auto& each : families_)
    if (!each.empty() && result.best.size() == count_ && faster(result.best.back(), each.front()))
      keep(result.others, each.front(), families_.size());
  std::ranges::reverse(result.pareto);
  if (!result.pareto.empty())
    std::erase_if(result.pareto,
                  [&](auto& x) { return x.cost.seconds > front_slowest * result.pareto.front().cost.seconds; });
  return result;
}

} // namespace ringmaster::training
