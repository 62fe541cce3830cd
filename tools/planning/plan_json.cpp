// Plans for programs: JSON, CSV.
#include "messages/errc.hpp"
#include "planner/plans/launch_options.hpp"
#include "planner/plans/undivided.hpp"
#include "planner/search/named_parts.hpp"
#include "runtime/text/json/json_writer.hpp"
#include "tools/planning/failures/failure_report.hpp"
#include "tools/planning/plan_notes.hpp"
#include "tools/planning/plan_report.hpp"
#include "tools/planning/plan_text.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

void write_parts(json_writer& json, const char* name, const named_parts& parts) {
  json.object(name);
  for (auto& [part, x] : parts)
    json.key(part).rounded(x, 9);
  json.end();
}

/// On one stage there is none.
std::string_view schedule_text(const training_setting& how) {
  return how.pp > 1 ? name_of(how.schedule) : "none";
}

/// Leaves the object open. `seconds`: of an iteration, simulated or in closed form, by which its rates are.
void begin_plan(json_writer& json, const plan_outcome& outcome, const planned& x, double seconds) {
  auto& how = x.how;
  const auto figures = figures_of(outcome, x, seconds);
  json.object()
    .member("tensor", how.tp)
    .member("context", how.cp)
    .member("data", how.dp)
    .member("expert", how.ep)
    .member("pipeline", how.pp)
    .member("micro_batch", how.micro_batch)
    .member("chunks", how.chunks)
    .member("schedule", schedule_text(how))
    .member("recompute", name_of(how.again))
    .member("sequence_parallel", how.sequence_parallel)
    .member("sharding", sharding_of(how))
    .member("time_s", x.cost.seconds)
    .member("rates_by", seconds == x.cost.seconds ? "time_s" : "simulated_time_s")
    .member("mfu_percent", 100 * figures.mfu)
    .member("tokens_per_s", figures.tokens_a_second)
    .member("tflops_per_gpu", figures.flops / 1e12);
  json.key("memory_bytes").fixed(x.cost.memory_bytes, 0);
  if (x.cost.host_bytes > 0)
    json.key("host_bytes").fixed(x.cost.host_bytes, 0);
  write_parts(json, "seconds", seconds_by_part(x.cost));
  write_parts(json, "hidden_seconds", hidden_by_part(x.cost));
  write_parts(json, "bytes", bytes_by_part(memory_of(outcome.asked.trained, how)));
  if (figures.joules > 0)
    json.member("joules", figures.joules);
  if (figures.days > 0)
    json.member("days", figures.days).member("gpu_hours", figures.gpu_hours).member("cost", figures.cost);
}

void write_frameworks(json_writer& json, const training_setting& how) {
  json.list("frameworks");
  for (auto framework : {training_framework::megatron, training_framework::torchtitan})
    if (can_run(framework, how))
      json.value(name_of(framework));
  json.end();
}

void write_confirmed(json_writer& json, const plan_outcome& outcome, const confirmed_plan& x) {
  begin_plan(json, outcome, x.plan, x.seconds());
  const auto band = band_of(outcome.asked, x.seconds(), outcome.best.front().seconds());
  json.member("least_time_s", band.least).member("most_time_s", band.most).member("tie", band.tie);
  write_frameworks(json, x.plan.how);
  if (x.simulated)
    json.member("simulated_time_s", x.simulated->seconds)
      .key("simulated_memory_bytes")
      .fixed(x.simulated->memory_bytes, 0)
      .member("simulated_fits", x.simulated->fits(outcome.asked.system))
      .member("micro_batches", x.plan.how.micro_batches())
      .member("simulated_micro_batches", x.simulated->micro_batches);
  else
    json.key("simulated_time_s")
      .null()
      .key("simulated_memory_bytes")
      .null()
      .key("simulated_fits")
      .null()
      .member("micro_batches", x.plan.how.micro_batches())
      .key("simulated_micro_batches")
      .null()
      .member("not_simulated", render(x.problem));
  json.end();
}

counted_scores counts_of(const plan_filter& x) {
  training_setting how;
  how.attention = x.attention;
  how.counted = x.counted;
  return how.counts();
}

void write_numbers(json_writer& json, const char* name, const std::vector<uint32_t>& all) {
  json.list(name);
  for (auto x : all)
    json.value(x);
  json.end();
}

} // namespace

std::string json_of(const plan_outcome& x) {
  const auto error = error_of(x.asked);
  json_writer json;
  json.object()
    .member("model", x.asked.trained.name)
    .member("parameters", parameters_of(x.asked.trained))
    .member("active_parameters", active_parameters_of(x.asked.trained))
    .member("embedding_parameters", parameter_counts_of(x.asked.trained).embedding)
    .member("multi_token", x.asked.trained.multi_token)
    .member("sequence", x.asked.trained.sequence)
    .member("positions", x.asked.trained.positions)
    .member("system", x.asked.system.name)
    .member("software", x.asked.system.software)
    .member("framework", name_of(x.asked.filter.framework))
    .member("estimate_error", error.tie)
    .member("estimate_error_is", error.assumed_because ? "assumed" : "measured")
    .member("estimate_error_assumed_because", error.assumed_because.value_or(""))
    .member("precision", name_of(x.asked.filter.computed_in))
    .member("mfu_counts", name_of(counts_of(x.asked.filter)))
    .member("reserved_bytes", static_cast<uint64_t>(x.asked.system.reserved_bytes))
    .member("gpus", x.asked.devices)
    .member("global_batch", x.asked.global_batch)
    .member("evaluated", x.found.evaluated)
    .member("fitting", x.found.fitting)
    .member("interrupted", x.found.interrupted || x.some_unconfirmed)
    .member("not_calibrated", not_calibrated(x.asked).value_or(""))
    .list("best");
  for (auto& each : x.best)
    write_confirmed(json, x, each);
  json.end();
  const auto counts = counts_of(x.best);
  json.object("launch_options");
  for (auto framework : {training_framework::megatron, training_framework::torchtitan})
    if (!x.best.empty() && can_run(framework, x.best.front().plan.how))
      json.member(name_of(framework), launch_options(framework, x.asked.trained, x.best.front().plan.how));
  json.end();
  json.object("confirmed")
    .member("by_whole_step", counts.whole)
    .member("by_shorter_steps", counts.by_shorter_steps)
    .member("in_closed_form", counts.closed_form)
    .end();
  for (auto [name, plans] :
       {std::pair{"too_large", &x.found.too_large}, {"nearest", &x.found.smallest}, {"pareto", &x.found.pareto}}) {
    json.list(name);
    for (auto& each : *plans) {
      begin_plan(json, x, each, each.cost.seconds);
      json.end();
    }
    json.end();
  }
  if (x.found.best.empty()) {
    json.member("least_gpus", x.least_devices);
    write_numbers(json, "near_gpus", x.near.devices);
    write_numbers(json, "near_global_batches", x.near.batches);
    json.list("not_dividing");
    if (x.found.evaluated == 0)
      for (auto& each : undivided_of(x.asked))
        json.value(each);
    json.end();
    json.list("filters_in_the_way");
    for (auto each : x.near.filters)
      json.value(each);
    json.end();
  }
  if (x.fewer.devices > 0)
    json.object("fewer_gpus").member("gpus", x.fewer.devices).member("time_s", x.fewer.seconds).end();
  if (x.batch.global_batch > 0)
    json.object("near_batch").member("global_batch", x.batch.global_batch).member("time_s", x.batch.seconds).end();
  json.list("notes");
  for (auto& each : notes_of(x))
    json.value(each);
  json.end();
  if (x.failures) {
    json.key("failures");
    write_json(json, *x.failures);
  }
  return json.end().take() + "\n";
}

std::string csv_of(const plan_outcome& x) {
  std::string text
    = "list,tensor,context,data,expert,pipeline,micro_batch,chunks,schedule,recompute,sequence_parallel,"
      "sharding,time_s,mfu_percent,tokens_per_s,tflops_per_gpu,memory_bytes,simulated_time_s,simulated_memory_bytes,"
      "rates_by,simulated_fits,days,gpu_hours,cost\n";
  auto add = [&](const char* list, const planned& plan, const std::optional<simulated_plan>& simulated) {
    auto& how = plan.how;
    const auto figures = figures_of(x, plan, simulated ? simulated->seconds : plan.cost.seconds);
    text += fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{:.6g},{:.4g},{:.6g},{:.5g},{:.0f},{},{},{},{},{}\n", list, how.tp, how.cp,
      how.dp, how.ep, how.pp, how.micro_batch, how.chunks, schedule_text(how), name_of(how.again),
      how.sequence_parallel ? 1 : 0, sharding_of(how), plan.cost.seconds, 100 * figures.mfu, figures.tokens_a_second,
      figures.flops / 1e12, plan.cost.memory_bytes, simulated ? fmt::format("{:.6g}", simulated->seconds) : "",
      simulated ? fmt::format("{:.0f}", simulated->memory_bytes) : "", simulated ? "simulated_time_s" : "time_s",
      simulated ? simulated->fits(x.asked.system) ? "1" : "0" : "",
      figures.days > 0 ? fmt::format("{:.5g},{:.6g},{:.6g}", figures.days, figures.gpu_hours, figures.cost) : ",,");
  };
  for (auto& each : x.best)
    add("best", each.plan, each.simulated);
  for (auto& each : x.found.pareto)
    add("pareto", each, std::nullopt);
  return text;
}

} // namespace ringmaster
