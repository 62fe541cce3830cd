#include "planner/search/plan_outcome.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace ringmaster::training {

namespace {

constexpr double hour = 3600, day = 24 * hour;

/// One stage of a search for its watch; remembers whether it was stopped.
class watched_stage {
public:
  watched_stage(search_stage stage, const stage_watch& watch) : stage_(stage), watch_(watch) {}

  bool operator()(double part) {
    ensure(part >= 0 && part <= 1, "a part of the work is from 0 to 1");
    interrupted_ = interrupted_ || !watch_(stage_, part);
    return !interrupted_;
  }
  bool interrupted() const { return interrupted_; }

private:
  search_stage stage_;
  const stage_watch& watch_;
  bool interrupted_ = false;
};

/// A plan of the Pareto front that does not fit as simulated is not on it.
void remove_too_large(plan_outcome& x) {
  for (auto& each : x.best)
    if (each.simulated && !each.simulated->fits(x.asked.system))
      std::erase_if(x.found.pareto, [&](auto& y) { return y.how == each.plan.how; });
}

void search(plan_outcome& x, size_t count, const stage_watch& watch) {
  const auto start = std::chrono::steady_clock::now();
  watched_stage stage{search_stage::searching, watch};
  x.found = plan_in_parallel(x.asked, count, std::ref(stage));
  x.search_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ensure(x.found.best.size() <= count, "a search returns at most the plans it was asked for");
  ensure(x.found.fitting + x.found.endless <= x.found.evaluated, "plans that fit were evaluated");
  ensure(x.found.best.empty() == (x.found.fitting == 0), "there is a best plan if any fits");
}

void confirm(plan_outcome& x, const stage_watch& watch) {
  watched_stage stage{search_stage::simulating, watch};
  x.best = confirm_plans(x.asked, x.found, [&](double part) { return stage(part) && !x.found.interrupted; });
  x.some_unconfirmed = stage.interrupted();
  ensure(x.best.size() == x.found.best.size(), "as many plans are confirmed as were found");
}

void advise(plan_outcome& x, bool has_advice, const stage_watch& watch) {
  if (x.found.evaluated == 0)
    x.near = near_questions_that_divide(x.asked);
  else if (x.found.best.empty()) {
    watched_stage stage{search_stage::counting_devices, watch};
    x.least_devices = least_devices(x.asked, std::ref(stage));
  }
  if (x.best.empty() || !has_advice)
    return;
  watched_stage stage{search_stage::advising, watch};
  x.fewer = faster_on_fewer(x.asked, x.found, x.best.front().seconds(), std::ref(stage));
  x.batch = faster_batch(x.asked, x.found, x.best.front().seconds(), std::ref(stage));
  ensure(x.fewer.devices < x.asked.devices, "fewer devices are fewer");
  ensure(x.batch.global_batch != x.asked.global_batch, "another batch is another one");
}

} // namespace

caf::expected<plan_outcome> search_plans(const search_request& request, const stage_watch& watch) {
  plan_outcome result;
  result.asked = request.asked;
  result.run = request.run;
  search(result, request.count, watch);
  if (result.found.endless > 0)
    return make_error(
      errc::invalid_argument,
      fmt::format("{} of {} have no finite time on {}: a constant of the system, or a size of the model, "
                  "is beyond what can be counted",
                  result.found.endless, counted(result.found.evaluated, "plan"), result.asked.system.name));
  confirm(result, watch);
  remove_too_large(result);
  advise(result, request.has_advice, watch);
  return result;
}

failure_question failing_job_of(const plan_outcome& x) {
  ensure(!x.best.empty(), "failures are of a job that has a plan");
  const auto& asked = x.asked;
  const auto& how = x.best.front().plan.how;
  failure_question job;
  job.gpus = asked.devices;
  const auto together = asked.system.devices_per_tray > 0 ? asked.system.devices_per_tray
                                                          : asked.system.devices_per_host;
  job.gpus_per_host = static_cast<uint32_t>(std::min<double>(together, asked.devices));
  job.copies = asked.trained.experts.count > 0 ? std::min(how.dp, how.expert_replicas()) : how.dp;
  job.sharded = how.zero > 0 || how.shard_ranks > 0;
  job.step_s = x.best.front().seconds();
  if (x.run.tokens) // without failures; an option that gives the run's length overrides this
    job.run_s = *x.run.tokens * job.step_s / (static_cast<double>(asked.global_batch) * asked.trained.sequence);
  ensure(job.copies > 0 && job.copies <= job.gpus, "each copy of the model is on at least one GPU");
  return job;
}

estimate_error error_of(const plan_question& asked) {
  return error_of_estimates(asked.system, {.experts = asked.trained.experts.count > 0,
                                           .flash = asked.filter.attention == attention_kernel::flash,
                                           .computed_in = asked.filter.computed_in});
}

time_band band_of(const plan_question& asked, double seconds, double first) {
  ensure(seconds > 0 && first > 0, "an iteration takes time");
  const auto error = error_of(asked);
  ensure(error.least <= error.most && error.tie >= 0, "an error band has a lower and an upper end");
  return {seconds * error.least, seconds * error.most, seconds <= first * (1 + error.tie)};
}

double goodput_of(const plan_outcome& x) {
  const auto result = x.failures ? x.failures->best_goodput() : 1;
  ensure(result >= 0 && result <= 1, "goodput is a part of the time");
  return result;
}

uint32_t spare_gpus(const plan_outcome& x) {
  return x.failures ? x.failures->asked.spares * x.failures->asked.gpus_per_host : 0;
}

plan_figures figures_of(const plan_outcome& x, const planned& plan, double seconds_each) {
  ensure(std::isfinite(seconds_each) && seconds_each > 0, "an iteration takes a finite time");
  auto& m = x.asked.trained;
  const auto tokens = static_cast<double>(x.asked.global_batch) * m.sequence;
  const bool whole = plan.how.counts() == counted_scores::full;
  plan_figures result;
  result.mfu = plan.cost.mfu * plan.cost.seconds / seconds_each;
  result.tokens_a_second = tokens / seconds_each;
  result.flops = flops_of(m, x.asked.global_batch, whole) / seconds_each / x.asked.devices;
  result.joules = x.asked.system.watts * x.asked.devices * seconds_each;
  if (x.run.tokens && goodput_of(x) >= goodput_min) {
    const auto seconds = *x.run.tokens / result.tokens_a_second / goodput_of(x);
    result.days = seconds / day;
    result.gpu_hours = seconds / hour * (x.asked.devices + spare_gpus(x));
    result.cost = result.gpu_hours * x.run.price.value_or(0);
  }
  return result;
}

namespace {

named_parts communication_by_part(const communication_parts& x) {
  return {{"tensor", x.layers.tensor},
          {"context", x.layers.context},
          {"experts", x.layers.experts},
          {"stages", x.hops},
          {"gradients", x.gradients}};
}

double amount_of(const named_parts& all, const std::string& name) {
  auto at = std::ranges::find(all, name, &named_part::name);
  return at == all.end() ? 0 : at->amount;
}

double sum_of(const named_parts& all) {
  return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, auto& x) { return sum + x.amount; });
}

bool equal_but_for_rounding(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

} // namespace

named_parts seconds_by_part(const iteration_estimate& x) {
  named_parts result{{"compute", x.seconds - x.bubble - x.imbalance - x.update - x.offload - x.exposed.sum()}};
  for (auto& part : communication_by_part(x.exposed))
    result.push_back(part);
  result.push_back({"bubble", x.bubble});
  result.push_back({"imbalance", x.imbalance});
  result.push_back({"optimizer", x.update});
  result.push_back({"offloading", x.offload});
  ensure(equal_but_for_rounding(sum_of(result), x.seconds), "the parts of an iteration add up to its time");
  return result;
}

named_parts hidden_by_part(const iteration_estimate& x) {
  return communication_by_part(x.hidden);
}

named_parts bytes_by_part(const memory_parts& x) {
  named_parts result{{"weights", x.weights},         {"gradients", x.gradients}, {"optimizer", x.optimizer},
                     {"activations", x.activations}, {"buffers", x.buffers},     {"logits", x.logits}};
  ensure(equal_but_for_rounding(sum_of(result), x.total()), "the parts of a rank's memory add up to all of it");
  for (auto& part : result)
    ensure(part.amount >= 0, "no part of a rank's memory is negative");
  return result;
}

std::vector<part_difference> differences(const named_parts& a, const named_parts& b) {
  auto names = a;
  for (auto& each : b)
    if (std::ranges::find(names, each.name, &named_part::name) == names.end())
      names.push_back(each);
  std::vector<part_difference> result;
  for (auto& [name, unused] : names)
    if (amount_of(a, name) != 0 || amount_of(b, name) != 0)
      result.push_back({name, amount_of(a, name), amount_of(b, name)});
  std::ranges::stable_sort(result, std::ranges::greater{}, [](auto& x) { return std::abs(x.b - x.a); });
  return result;
}

} // namespace ringmaster::training
