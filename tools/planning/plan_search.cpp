#include "tools/planning/plan_search.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/planning/in_turns.hpp"
#include "tools/planning/plan_confirm.hpp"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

namespace ringmaster {

namespace {

using namespace training;

/// Several parts of the search at once.
transformer_plans search_in_turns(const plan_question& asked, watched_progress& watch) {
  plan_search search{asked, best_shown};
  std::mutex mutex;
  size_t done = 0;
  auto look = [&](size_t more) {
    std::scoped_lock lock{mutex};
    return watch(static_cast<double>(done += more) / static_cast<double>(search.shapes()));
  };
  in_turns(plan_search::parts, [&](size_t part) {
    if (look(0))
      search.run(part, [&] { return look(1); });
  });
  auto result = search.take();
  result.interrupted = watch.interrupted();
  return result;
}

plan_outcome find_plans(const plan_call_options& opts, std::FILE* err) {
  plan_outcome result;
  result.asked = {opts.trained, opts.transformer.system, *opts.gpus, *opts.global_batch, opts.filter.filter};
  result.asked.filter.computed_in = opts.transformer.computed_in;
  result.asked.filter.attention = opts.transformer.attention;
  result.asked.filter.counted = opts.transformer.counted;
  if (opts.transformer.recompute)
    result.asked.filter.recomputations = {opts.transformer.again};
  opts.memory_options.apply_to(result.asked.filter);
  result.run = {opts.run.tokens, opts.run.price};
  auto begun = std::chrono::steady_clock::now();
  {
    watched_progress watch{"plan"};
    result.found = search_in_turns(result.asked, watch);
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (!opts.json && !opts.csv && result.found.evaluated > 0) // not with the result, which is the same each time
    fmt::print(err, "{} plans in {:.2g} s, {:.1f} million a second\n", result.found.evaluated, seconds,
               static_cast<double>(result.found.evaluated) / 1e6 / seconds);
  return result;
}

/// Of a run by the best plan.
caf::expected<failure_findings> failures_of(const plan_call_options& opts, const plan_question& asked,
                                            const confirmed_plan& best) {
  const auto& plan = best.plan;
  failure_question job;
  job.gpus = asked.devices;
  const auto together = asked.system.devices_per_tray > 0 ? asked.system.devices_per_tray
                                                          : asked.system.devices_per_host;
  job.gpus_per_host = static_cast<uint32_t>(std::min<double>(together, asked.devices));
  job.copies = asked.trained.experts.count > 0 ? std::min(plan.how.shape.data, plan.how.expert_replicas())
                                               : plan.how.shape.data;
  job.sharded = plan.how.zero > 0 || plan.how.shard > 0;
  job.step_s = best.seconds();
  if (opts.run.tokens) // without failures; a --run that is told goes before
    job.run_s = *opts.run.tokens * job.step_s / (static_cast<double>(asked.global_batch) * asked.trained.sequence);
  auto question = opts.failures.question(job);
  if (!question)
    return std::move(question.error());
  return find_failures(*question, opts.failures.shrink, opts.failures.plays.value_or(0),
                       opts.failures.life_shape.value_or(1));
}

/// Of the front, what does not fit as simulated.
void leave_out_too_large(plan_outcome& x) {
  for (auto& each : x.best)
    if (each.simulated && !each.simulated->fits(x.asked.system))
      std::erase_if(x.found.pareto, [&](auto& y) { return y.how == each.plan.how; });
}

} // namespace

caf::expected<plan_outcome> search_plans(const plan_call_options& opts, std::FILE* err) {
  auto result = find_plans(opts, err);
  if (result.found.endless > 0)
    return make_error(
      errc::invalid_argument,
      fmt::format("{} of {} have no finite time on {}: a constant of the system, or a size of the model, "
                  "is beyond what can be counted",
                  result.found.endless, counted(result.found.evaluated, "plan"), result.asked.system.name));
  {
    watched_progress watch{"plan: simulating the best"};
    result.best = confirm_plans(result.asked, result.found,
                                [&](double part) { return watch(part) && !result.found.interrupted; });
    result.some_unconfirmed = watch.interrupted();
  }
  leave_out_too_large(result);
  if (result.found.evaluated == 0)
    result.near = near_questions_that_divide(result.asked);
  else if (result.found.best.empty()) {
    watched_progress watch{"plan: how many GPUs it takes"};
    result.least_devices = least_devices(result.asked, std::ref(watch));
  }
  if (!result.best.empty() && !opts.csv) {
    watched_progress watch{"plan: fewer GPUs, other batches"};
    result.fewer = faster_on_fewer(result.asked, result.found, result.best.front().seconds(), std::ref(watch));
    result.batch = faster_batch(result.asked, result.found, result.best.front().seconds(), std::ref(watch));
  }
  if (opts.failures && !result.best.empty()) {
    auto found = failures_of(opts, result.asked, result.best.front());
    if (!found)
      return std::move(found.error());
    result.failures = std::move(*found);
  }
  return result;
}

} // namespace ringmaster
