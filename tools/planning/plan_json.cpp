// Plans for programs: JSON, CSV.
#include "messages/errc.hpp"
#include "planner/plans/launch_options.hpp"
#include "planner/plans/undivided.hpp"
#include "planner/search/plan_outcome.hpp"
#include "runtime/text/json_field.hpp"
#include "tools/planning/failures/failure_report.hpp"
#include "tools/planning/plan_report.hpp"
#include "tools/planning/plan_tables.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace ringmaster {

using namespace training;

namespace {

json_value json_of(const named_parts& parts) {
  auto result = json_value::object();
  for (auto& [part, x] : parts)
    result[part] = rounded(x, 9);
  return result;
}

/// Bytes are whole, and written without an exponent.
int64_t whole(double bytes) {
  return std::llround(bytes);
}

/// On one stage there is none.
std::string_view schedule_text(const training_setting& how) {
  return how.pp > 1 ? name_of(how.schedule) : "none";
}

/// `seconds`: of an iteration, simulated or in closed form. Rates refer to it.
json_value json_of(const plan_outcome& outcome, const planned& x, double seconds) {
  auto& how = x.how;
  const auto figures = figures_of(outcome, x, seconds);
  json_value json{{"tensor", how.tp},
                  {"context", how.cp},
                  {"data", how.dp},
                  {"expert", how.ep},
                  {"pipeline", how.pp},
                  {"micro_batch", how.micro_batch},
                  {"chunks", how.chunks},
                  {"schedule", schedule_text(how)},
                  {"recompute", name_of(how.again)},
                  {"sequence_parallel", how.sequence_parallel},
                  {"sharding", sharding_of(how)},
                  {"time_s", x.cost.seconds},
                  {"rates_by", seconds == x.cost.seconds ? "time_s" : "simulated_time_s"},
                  {"mfu_percent", 100 * figures.mfu},
                  {"tokens_per_s", figures.tokens_a_second},
                  {"tflops_per_gpu", figures.flops / 1e12},
                  {"memory_bytes", whole(x.cost.memory_bytes)}};
  if (x.cost.host_bytes > 0)
    json["host_bytes"] = whole(x.cost.host_bytes);
  json["seconds"] = json_of(seconds_by_part(x.cost));
  json["hidden_seconds"] = json_of(hidden_by_part(x.cost));
  json["bytes"] = json_of(bytes_by_part(memory_of(outcome.asked.trained, how)));
  if (figures.joules > 0)
    json["joules"] = figures.joules;
  if (figures.days > 0)
    json.update({{"days", figures.days}, {"gpu_hours", figures.gpu_hours}, {"cost", figures.cost}});
  return json;
}

json_value frameworks_json(const training_setting& how) {
  auto result = json_value::array();
  for (auto framework : {training_framework::megatron, training_framework::torchtitan})
    if (can_run(framework, how))
      result.push_back(name_of(framework));
  return result;
}

json_value json_of(const plan_outcome& outcome, const confirmed_plan& x) {
  const auto band = band_of(outcome.asked, x.seconds(), outcome.best.front().seconds());
  const bool known = x.simulated.has_value();
  auto if_known = [&](auto of) { return known ? json_value(of(*x.simulated)) : json_value{}; };
  auto json = json_of(outcome, x.plan, x.seconds());
  json.update({{"least_time_s", band.least},
               {"most_time_s", band.most},
               {"tie", band.tie},
               {"frameworks", frameworks_json(x.plan.how)},
               {"simulated_time_s", if_known([](auto& simulated) { return simulated.seconds; })},
               {"simulated_memory_bytes", if_known([](auto& simulated) { return whole(simulated.memory_bytes); })},
               {"simulated_fits", if_known([&](auto& simulated) { return simulated.fits(outcome.asked.system); })},
               {"micro_batches", x.plan.how.micro_batches()},
               {"simulated_micro_batches", if_known([](auto& simulated) { return simulated.micro_batches; })}});
  if (!known)
    json["not_simulated"] = render(x.problem);
  return json;
}

counted_scores counts_of(const plan_filter& x) {
  training_setting how;
  how.attention = x.attention;
  how.counted = x.counted;
  return how.counts();
}

/// What the search looked at and found, without the plans.
json_value head_json(const plan_outcome& x) {
  const auto error = error_of(x.asked);
  return {{"model", x.asked.trained.name},
          {"parameters", parameters_of(x.asked.trained)},
          {"active_parameters", active_parameters_of(x.asked.trained)},
          {"embedding_parameters", parameter_counts_of(x.asked.trained).embedding},
          {"multi_token", x.asked.trained.multi_token},
          {"sequence", x.asked.trained.sequence},
          {"positions", x.asked.trained.positions},
          {"system", x.asked.system.name},
          {"software", x.asked.system.software},
          {"framework", name_of(x.asked.filter.framework)},
          {"estimate_error", error.tie},
          {"estimate_error_is", error.assumed_because ? "assumed" : "measured"},
          {"estimate_error_assumed_because", error.assumed_because.value_or("")},
          {"precision", name_of(x.asked.filter.computed_in)},
          {"mfu_counts", name_of(counts_of(x.asked.filter))},
          {"reserved_bytes", static_cast<uint64_t>(x.asked.system.reserved_bytes)},
          {"gpus", x.asked.devices},
          {"global_batch", x.asked.global_batch},
          {"evaluated", x.found.evaluated},
          {"fitting", x.found.fitting},
          {"interrupted", x.found.interrupted || x.some_unconfirmed},
          {"not_calibrated", not_calibrated(x.asked).value_or("")}};
}

json_value launch_options_json(const plan_outcome& x) {
  auto result = json_value::object();
  for (auto framework : {training_framework::megatron, training_framework::torchtitan})
    if (!x.best.empty() && can_run(framework, x.best.front().plan.how))
      result[name_of(framework)] = launch_options(framework, x.asked.trained, x.best.front().plan.how);
  return result;
}

} // namespace

std::string json_of(const plan_outcome& x) {
  auto json = head_json(x);
  auto& best = json["best"] = json_value::array();
  for (auto& each : x.best)
    best.push_back(json_of(x, each));
  const auto counts = counts_of(x.best);
  json["launch_options"] = launch_options_json(x);
  json["confirmed"] = {{"by_whole_step", counts.whole},
                       {"by_shorter_steps", counts.by_shorter_steps},
                       {"in_closed_form", counts.closed_form}};
  for (auto [name, plans] :
       {std::pair{"too_large", &x.found.too_large}, {"nearest", &x.found.smallest}, {"pareto", &x.found.pareto}}) {
    auto& list = json[name] = json_value::array();
    for (auto& each : *plans)
      list.push_back(json_of(x, each, each.cost.seconds));
  }
  if (x.found.best.empty())
    json.update({{"least_gpus", x.least_devices ? json_value(*x.least_devices) : json_value{}},
                 {"near_gpus", x.near.devices},
                 {"near_global_batches", x.near.batches},
                 {"not_dividing", x.found.evaluated == 0 ? json_value(undivided_of(x.asked)) : json_value::array()},
                 {"filters_in_the_way", x.near.filters}});
  if (x.fewer.devices > 0)
    json["fewer_gpus"] = {{"gpus", x.fewer.devices}, {"time_s", x.fewer.seconds}};
  if (x.batch.global_batch > 0)
    json["near_batch"] = {{"global_batch", x.batch.global_batch}, {"time_s", x.batch.seconds}};
  json["notes"] = notes_of(x);
  if (x.failures)
    json["failures"] = json_of(*x.failures);
  return json_text(json) + "\n";
}

std::string csv_of(const plan_outcome& x) {
  std::string text = "list,tensor,context,data,expert,pipeline,micro_batch,chunks,schedule,recompute,sequence_parallel,"
                     "sharding,time_s,mfu_percent,tokens_per_s,tflops_per_gpu,memory_bytes,simulated_time_s,simulated_"
                     "memory_bytes,rates_by,simulated_fits,days,gpu_hours,cost\n";
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
