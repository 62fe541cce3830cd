#include "training/measured/profiled_costs.hpp"

#include "training/computed/step_world.hpp"
#include "training/language/collective_kind.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace ringmaster::training {

namespace {

double end_of(const event& x) {
  return x.start + x.duration;
}

/// When what each rank had aside was over, ascending.
std::map<uint32_t, std::vector<double>> aside_ends(const std::vector<event>& all) {
  std::map<uint32_t, std::vector<double>> result;
  for (auto& x : all)
    if (x.aside)
      result[x.rank].push_back(end_of(x));
  for (auto& [rank, ends] : result)
    std::ranges::sort(ends);
  return result;
}

/// Of each rank in its order, and all that lies between two operations counted to the one before, or, where that one is
/// a communication or none, or something aside was waited for since, to the next that is none: what only prepares, and
/// what a rank was held up by, also before it began. What was waited for does not count: until something aside was
/// over.
std::vector<event> with_what_prepares(std::vector<event> all) {
  std::ranges::stable_sort(all, {}, [](auto& x) { return std::pair{x.rank, x.start}; });
  auto ends = aside_ends(all);
  auto prepared_from = [&](uint32_t rank, double busy_until, double next) {
    const auto& its = ends[rank];
    const auto later = std::ranges::upper_bound(its, next);
    return later == its.begin() ? busy_until : std::max(busy_until, *std::prev(later));
  };
  std::vector<event> result;
  std::optional<uint32_t> rank;
  double busy_until = 0, owed = 0;
  bool waited = false;
  for (auto& x : all) {
    if (std::exchange(rank, x.rank) != x.rank)
      busy_until = owed = waited = 0;
    auto* before = result.empty() || result.back().rank != x.rank ? nullptr : &result.back();
    const auto from = prepared_from(x.rank, busy_until, x.start);
    waited = waited || from > busy_until;
    auto& prepared = before != nullptr && !is_communication(before->what) && !waited ? before->duration : owed;
    prepared += std::max(x.start - from, 0.) + (takes_time(x.what) ? 0 : x.duration);
    busy_until = x.aside ? std::max(busy_until, x.start) : end_of(x);
    if (!takes_time(x.what) || x.aside)
      continue;
    result.push_back(x);
    waited = false;
    if (!is_communication(x.what))
      result.back().duration += std::exchange(owed, 0);
  }
  for (auto& x : all)
    if (x.aside)
      result.push_back(x);
  return result;
}

/// Where those of one communication meet: what, from whom or among whom, to whom, of which layer and samples, for which
/// time.
using place = std::tuple<op, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t>;

struct meeting {
  double begun = 0, ended = 0; ///< When the last one came; when it was over.
  std::set<uint64_t> firsts{}; ///< Of its ranks' samples: data parallel ones have their own.
  std::vector<place> before{}; ///< What its ranks did aside before it.
};

/// When a communication was over, as one more of its ranks has it. What is aside ends for all ranks at once, and is
/// noticed by those that compute when they have done so: the first one tells. In any other all wait, and who has moved
/// its data last is the last.
double over_at(const event& x, const meeting& its) {
  const auto end = end_of(x);
  return !x.aside || its.ended == 0 ? std::max(its.ended, end) : std::min(its.ended, end);
}

std::map<place, meeting> meetings_of(const std::vector<event>& step) {
  std::map<place, meeting> result;
  std::map<std::pair<uint32_t, place>, uint64_t> turns; // of each rank
  std::map<uint32_t, place> latest_aside;               // the same
  for (auto& x : step) {
    if (!is_communication(x.what))
      continue;
    const bool sends = x.what == op::send, is_pair = sends || x.what == op::receive;
    place at{is_pair ? op::receive : x.what,        is_pair && sends ? x.rank : x.peer,
             is_pair ? sends ? x.peer : x.rank : 0, x.layer,
             is_pair ? x.samples.begin : 0,         0};
    std::get<5>(at) = turns[{x.rank, at}]++;
    auto& its = result[at];
    its.begun = std::max(its.begun, sends ? end_of(x) : x.start);
    its.firsts.insert(x.samples.begin);
    if (!sends)
      its.ended = over_at(x, its);
    if (!x.aside)
      continue;
    if (auto before = latest_aside.find(x.rank); before != latest_aside.end())
      its.before.push_back(before->second);
    latest_aside[x.rank] = at;
  }
  return result;
}

/// From when all were there to when it was over. A rank does what is aside one after the other, as the simulator has
/// it: it is there when the one before is over, though it waits for several at once.
double seconds_of(const meeting& x, const std::map<place, meeting>& all) {
  auto there = x.begun;
  for (auto& each : x.before)
    there = std::max(there, all.at(each).ended);
  return std::max(x.ended - there, 0.);
}

} // namespace

profiled_costs::profiled_costs(const training_job& job, const std::vector<event>& measured,
                               communication_times communications)
  : job_(job), communications_(std::move(communications)) {
  std::map<kind, uint64_t> counts;
  auto add = [&](const kind& of, double seconds) {
    seconds_[of] += seconds;
    ++counts[of];
  };
  const auto all = with_what_prepares(measured);
  for (auto& x : all)
    if (!is_communication(x.what))
      for (auto first : {x.samples.begin, any_first})
        add({x.what, x.rank, x.layer, first, x.samples.count()}, x.duration);
    else if (x.what == op::send && !x.aside) // which does not wait
      add({x.what, 0, x.layer, any_first, 0}, x.duration);
  auto meetings = meetings_of(all);
  for (auto& [where, its] : meetings)
    for (its.firsts.insert(any_first); auto first : its.firsts)
      add({std::get<0>(where), 0, std::get<3>(where), first, 0}, seconds_of(its, meetings));
  for (auto& [which, seconds] : seconds_)
    seconds /= static_cast<double>(counts[which]);
}

uint64_t profiled_costs::memory_of(const value_tag& x) const {
  return elements(job_, x) * bytes_of(job_.as);
}

double profiled_costs::time_of(const pending& x, uint32_t) const {
  const auto samples = x.argument.samples.first();
  const bool communicates = is_communication(x.what);
  if (communicates && communications_ && x.what != op::send)
    return communications_(x);
  kind wanted{x.what, communicates ? 0 : x.rank, x.argument.layer, samples.begin, communicates ? 0 : samples.count()};
  for (auto first : {samples.begin, any_first}) {
    wanted.first = first;
    if (auto its = seconds_.find(wanted); its != seconds_.end())
      return its->second;
  }
  if (communicates)
    return 0;
  // The nearest of its layer, per sample.
  auto alike = [&](kind y) {
    y.samples = wanted.samples;
    return y == wanted;
  };
  auto near = seconds_.lower_bound(wanted);
  if ((near == seconds_.end() || !alike(near->first)) && near != seconds_.begin())
    --near;
  if (near == seconds_.end() || !alike(near->first))
    return 0;
  const auto measured = near->first.samples;
  return measured == 0 ? near->second
                       : near->second * static_cast<double>(wanted.samples) / static_cast<double>(measured);
}

steps_to_measure spread_steps(uint64_t first, uint64_t end, uint64_t an_epoch) {
  constexpr uint64_t count = 15;
  const auto begin = std::min(first + 1, end - 1);
  auto every = (end - begin + count - 1) / count;
  while (std::gcd(every, an_epoch) > 1)
    ++every;
  return {begin, every};
}

double median_of(std::vector<double> values) {
  if (values.empty())
    return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double median_around(std::span<const double> seconds, size_t step) {
  constexpr size_t reach = 10;
  const auto begin = step - std::min(step, reach), end = std::min(step + reach + 1, seconds.size());
  const auto around = seconds.subspan(begin, end - begin);
  return median_of({around.begin(), around.end()});
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

caf::expected<predicted_step> predict(const training_job& job, uint32_t ranks, std::span<const measured_step> steps,
                                      double usual, const communication_times& communications) {
  std::vector<std::pair<double, size_t>> parts; // of what is usual
  std::vector<training_outcome> simulated;
  const auto shape = step_shape(job, {ranks, setting_of(job.shape)});
  for (auto& step : steps) {
    auto found = simulate([&](rank& self) { return job.strategy->run(self, shape); }, shape, ranks,
                          profiled_costs{job, step.events, communications}, true);
    if (!found)
      return std::move(found.error());
    const auto beside = std::max(step.seconds - outcome_of(step.events, ranks).end, 0.);
    parts.emplace_back((found->end + beside) / (step.around > 0 ? step.around : usual), simulated.size());
    simulated.push_back(std::move(*found));
  }
  std::ranges::sort(parts);
  const auto [part, of] = parts[parts.size() / 2];
  return predicted_step{of, outcome_of(steps[of].events, ranks), std::move(simulated[of]), part * usual};
}

namespace {

class tuned_times {
public:
  tuned_times(const training_job& job, const process_constants& machine) : job_(job), machine_(machine) {}

  double operator()(const pending& x) {
    const auto kind = collective_kind_of(x.what);
    plan_request request;
    request.world_size = kind == proto::SEND_RECV ? 2 : x.among.count;
    request.count = count_of(job_, x);
    request.peer = 1; // of a pair, from rank 0
    const auto work = work_in_process(*first_shared_memory(kind), request, bytes_of(job_.as), machine_);
    return machine_.training_s(kind) + (work ? estimate(*work, machine_).total_s() : 0); // of joint ones always
  }

private:
  const training_job& job_;
  process_constants machine_;
};

} // namespace

communication_times tuned_communications(const training_job& job, const process_constants& machine) {
  return tuned_times{job, machine};
}

} // namespace ringmaster::training
