#include "runtime/training/computed/profiled_costs.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

/// Which occurrence of a communication an event is, on its rank: the ranks' are met by it.
using turn = std::tuple<op, uint32_t, uint64_t>;

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

/// Of each rank in its order, and what only prepares counted to the operation before it, as all that lies between two.
std::vector<event> with_what_prepares(std::vector<event> all) {
  std::ranges::stable_sort(all, {}, [](auto& x) { return std::pair{x.rank, x.start}; });
  std::vector<event> result;
  for (auto& x : all) {
    auto* before = result.empty() || result.back().rank != x.rank ? nullptr : &result.back();
    if (before != nullptr && !is_communication(before->what))
      before->duration = std::max(before->duration, x.start - before->start + (takes_time(x.what) ? 0 : x.duration));
    if (takes_time(x.what) && !x.aside)
      result.push_back(x);
  }
  for (auto& x : all)
    if (x.aside)
      result.push_back(x);
  return result;
}

} // namespace

profiled_costs::profiled_costs(const training_job& job, const std::vector<event>& measured) : job_(job) {
  std::map<kind, std::vector<double>> all;
  std::map<turn, double> shortest; // of those who met: whoever came last
  std::map<std::tuple<uint32_t, op, uint32_t>, uint64_t> turns;
  for (auto& x : with_what_prepares(measured)) {
    if (!is_communication(x.what)) {
      all[{x.what, x.layer, x.samples.count()}].push_back(x.duration);
      continue;
    }
    // Of receives, one for which the value lay ready.
    const auto number = x.what == op::receive ? 0 : turns[{x.rank, x.what, x.layer}]++;
    const auto [found, is_first] = shortest.try_emplace({x.what, x.layer, number}, x.duration);
    if (!is_first)
      found->second = std::min(found->second, x.duration);
  }
  for (auto& [which, duration] : shortest)
    all[{std::get<0>(which), std::get<1>(which), 0}].push_back(duration);
  for (auto& [which, durations] : all)
    seconds_[which] = median(std::move(durations));
}

uint64_t profiled_costs::memory_of(const value_tag& x) const {
  return elements(job_, x) * bytes_of(job_.as);
}

double profiled_costs::time_of(const pending& x, uint32_t) const {
  const auto samples = is_communication(x.what) ? 0 : x.argument.samples.first().count();
  const kind wanted{x.what, x.argument.layer, samples};
  if (auto found = seconds_.find(wanted); found != seconds_.end())
    return found->second;
  // The nearest of its layer, per sample.
  auto near = seconds_.lower_bound(wanted);
  if (near == seconds_.end() && near != seconds_.begin())
    --near;
  if (near == seconds_.end() || std::get<0>(near->first) != x.what || std::get<1>(near->first) != x.argument.layer)
    return 0;
  const auto measured = std::get<2>(near->first);
  return measured == 0 ? near->second : near->second * static_cast<double>(samples) / static_cast<double>(measured);
}

training_outcome outcome_of(std::vector<event> measured, uint32_t ranks) {
  training_outcome result;
  result.ranks.resize(ranks);
  for (auto& x : measured) {
    auto& its = result.ranks[x.rank];
    its.last_start = std::max(its.last_start, x.start);
    its.end = std::max(its.end, x.start + x.duration);
    (x.aside ? its.aside : is_communication(x.what) ? its.communication : its.compute) += x.duration;
    its.peak_memory = std::max(its.peak_memory, x.memory);
    result.end = std::max(result.end, its.end);
    result.time = std::max(result.time, its.last_start);
  }
  result.operations = measured.size();
  result.events = std::move(measured);
  return result;
}

} // namespace ringmaster::training
