#include "tools/planning/failures/failure_report.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "planner/failures/failure_simulation.hpp"
#include "runtime/text/pages/text_table.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

std::string way_to_go_on(const failure_question& asked, recovery how) {
  const auto spares = asked.spares == 0 ? "no spare" : counted(asked.spares, "spare");
  switch (how) {
    case recovery::restart: return "restart, always a spare";
    case recovery::wait: return fmt::format("restart, {}: wait", spares);
    case recovery::smaller: return fmt::format("restart, {}: go on smaller", spares);
    case recovery::shrink:
      return fmt::format("shrink, {}: {}", spares, asked.sharded ? "from checkpoint" : "no restart");
  }
  return {};
}

std::string part_text(double part) {
  return fmt::format("{:.2f} %", 100 * part);
}

/// What each way to go on leaves. Where lines are too long it leaves columns out, in this order: smaller, steps a day,
/// from to, waiting, effective, checkpoint.
std::string recoveries_table(const failure_findings& found, const page_format& page) {
  text_table table{{left_column("going on by"), right_column("checkpoint", 6), right_column("effective", 5),
                    right_column("goodput"), right_column("waiting", 4), right_column("smaller", 1),
                    right_column("steps a day", 2), right_column("played"), right_column("from to", 3)}};
  for (auto& each : found.recoveries) {
    auto& outcome = each.outcome;
    std::vector<std::string> cells{way_to_go_on(found.asked, outcome.how),
                                   outcome.interval_s > found.asked.run_s ? "none"
                                                                          : long_duration_text(outcome.interval_s),
                                   part_text(outcome.effective),
                                   part_text(outcome.goodput),
                                   part_text(outcome.waiting),
                                   part_text(outcome.smaller),
                                   fmt::format("{:.0f}", outcome.goodput * 86400 / found.asked.step_s)};
    if (each.played) {
      auto& goodput = each.played->goodput;
      cells.push_back(part_text(goodput.mean));
      cells.push_back(fmt::format("{:.2f} to {:.2f}", 100 * goodput.least, 100 * goodput.most));
    }
    table.add_row(std::move(cells));
  }
  return table.text(page.table_columns(), "--wide shows all");
}

json_value json_of(const run_spread& x) {
  return {{"mean", x.mean}, {"least", x.least}, {"most", x.most}};
}

json_value json_of(const recovery_finding& x) {
  auto& found = x.outcome;
  json_value json{{"recovery", name_of(found.how)},
                  {"checkpoint_interval_s", found.interval_s},
                  {"effective_fraction", found.effective},
                  {"goodput_fraction", found.goodput},
                  {"waiting_fraction", found.waiting},
                  {"smaller_fraction", found.smaller},
                  {"interruptions_a_day", found.interruptions_a_day}};
  if (x.played)
    json["played"] = {{"effective_fraction", json_of(x.played->effective)},
                      {"goodput_fraction", json_of(x.played->goodput)},
                      {"waiting_fraction", json_of(x.played->waiting)},
                      {"smaller_fraction", json_of(x.played->smaller)},
                      {"interruptions", json_of(x.played->interruptions)}};
  return json;
}

} // namespace

std::string best_way_text(const failure_findings& found) {
  return way_to_go_on(found.asked, found.best().outcome.how);
}

std::string report_of(const failure_findings& found, const page_format& page) {
  auto& x = found.asked;
  auto& a = found.answer;
  auto text = page.line(fmt::format("Failures: of {} in {} one fails every {}, {:.3g} a day, {:.0f} in {}",
                                    counted(x.gpus, "GPU"), counted(hosts_of(x), "host"), long_duration_text(a.mttf_s),
                                    86400 / a.mttf_s, x.run_s / a.mttf_s, long_duration_text(x.run_s)));
  text += page.line(
    fmt::format("Of checkpoints that take {} each, one every {} is best (Young {}, Daly {}{})",
                long_duration_text(x.checkpoint_write_s), long_duration_text(a.best_s), long_duration_text(a.young_s),
                long_duration_text(a.daly_s),
                std::min({a.young_s, a.daly_s, a.best_s}) > x.step_s ? "" : "; none is shorter than a step"));
  text += page.line(fmt::format("A restart takes {}, a repair {}", long_duration_text(x.restart_s),
                                long_duration_text(x.repair_s)));
  if (x.copies == 1)
    text += page.line("There is one copy of the model: any host's failure stops it, and it cannot continue smaller");
  else if (x.sharded)
    text += page.line(
      "The optimizer's state is shared by all copies (ZeRO): shrinking also goes back to the checkpoint");
  if (x.restart_s > x.repair_s)
    text += page.line("A restart takes longer than a repair: continuing smaller is estimated to first order only; "
                      "--plays simulates it");
  else if (x.copies > 1 && x.checkpoint_write_s > a.mttf_s / 3)
    text += page.line("A checkpoint takes over a third of the time between failures: the goodput of continuing smaller "
                      "may be several times too high; --plays simulates it");
  if (found.best_goodput() < goodput_min)
    text += page.line(fmt::format("Next to nothing is kept: the job fails every {}, and a restart takes {}",
                                  long_duration_text(a.mttf_s), long_duration_text(x.restart_s)));
  text += "\n" + recoveries_table(found, page);
  if (std::ranges::any_of(found.recoveries, [](auto& each) { return each.played.has_value(); }))
    text += page.line("played: goodput of the runs that were played, the mean; from to: the least and the most, in %");
  if (found.cheaper)
    text += page.line(
      fmt::format("With {} standing by (--spares {}) {} is kept: a run takes {:.2f} of the GPU-hours, theirs included",
                  counted(found.cheaper->spares, "host"), found.cheaper->spares, part_text(found.cheaper->goodput),
                  found.cheaper->gpu_hours));
  return text;
}

json_value json_of(const failure_findings& found) {
  auto& x = found.asked;
  auto& a = found.answer;
  json_value json{{"gpus", x.gpus},
                  {"hosts", hosts_of(x)},
                  {"copies", x.copies},
                  {"sharded", x.sharded},
                  {"spares", x.spares},
                  {"gpu_mttf_s", x.gpu_mttf_s},
                  {"job_mttf_s", a.mttf_s},
                  {"interruptions_a_day", 86400 / a.mttf_s},
                  {"run_s", x.run_s},
                  {"interruptions_of_run", x.run_s / a.mttf_s},
                  {"step_s", x.step_s},
                  {"checkpoint_write_s", x.checkpoint_write_s},
                  {"restart_s", x.restart_s},
                  {"detection_s", x.detection_s},
                  {"repair_s", x.repair_s},
                  {"join_s", x.join_s},
                  {"young_interval_s", a.young_s},
                  {"daly_interval_s", a.daly_s},
                  {"best_interval_s", a.best_s},
                  {"recoveries", json_value::array()},
                  {"cheaper", nullptr}};
  for (auto& each : found.recoveries)
    json["recoveries"].push_back(json_of(each));
  if (found.cheaper)
    json["cheaper"] = {{"spares", found.cheaper->spares},
                       {"goodput_fraction", found.cheaper->goodput},
                       {"gpu_hours_fraction", found.cheaper->gpu_hours}};
  return json;
}

using namespace training;

namespace {

constexpr uint32_t spares_max = 65536, plays_max = 1000;

caf::expected<double> parse_shape(const std::string& text) {
  const auto x = decimal_in(text);
  if (!x || !(*x >= life_shape_min && *x <= life_shape_max))
    return invalid(fmt::format("\"{}\" is not a number from {} to {}", text, life_shape_min, life_shape_max));
  return *x;
}

} // namespace

void failure_options::add_to(option_table& table) {
  auto duration = [&](const std::string& name, std::optional<double>& target) -> option& {
    return table.parsed(name, target, parse_duration_s);
  };
  duration("--gpu-mttf", gpu_mttf_s)
    .says("T", "mean time to failure of a GPU with its share of the host, such as 50000h: what failures leave of the "
               "best plan")
    .otherwise("nothing fails");
  duration("--checkpoint-write", checkpoint_write_s).says("T", "that a checkpoint stops training").otherwise("30s");
  duration("--checkpoint-every", interval_s).says("T", "training between two checkpoints").otherwise("the best");
  duration("--restart", restart_s)
    .says("T", "from a failure until training runs again, the detection included")
    .otherwise("5min");
  duration("--detection", detection_s).says("T", "from a failure until it is known").otherwise("2.5s");
  duration("--repair", repair_s).says("T", "until a failed host is back").otherwise("24h");
  table.number("--spares", spares, 0, spares_max).says("N", "hosts that stand by").otherwise("0");
  table.flag("--shrink", shrink).says("also: those that are left repeat the step, in place of a restart");
  duration("--join", join_s)
    .says("T", "that training stops while a host joins one that shrank")
    .otherwise("as --checkpoint-write");
  duration("--run", run_s).says("T", "the run's length").otherwise("30d");
  table.number("--plays", plays, 1, plays_max)
    .says("N", "also simulates the run N times, failure by failure")
    .otherwise("none");
  table.parsed("--life-shape", life_shape, parse_shape)
    .says("K", "of the Weibull distribution of hosts' lives that are played: below 1 the new fail, above it the old")
    .otherwise("1, the exponential one");
}

std::string failure_options::given() const {
  return gpu_mttf_s           ? "--gpu-mttf"
         : checkpoint_write_s ? "--checkpoint-write"
         : interval_s         ? "--checkpoint-every"
         : restart_s          ? "--restart"
         : detection_s        ? "--detection"
         : repair_s           ? "--repair"
         : spares             ? "--spares"
         : shrink             ? "--shrink"
         : join_s             ? "--join"
         : run_s              ? "--run"
         : plays              ? "--plays"
         : life_shape         ? "--life-shape"
                              : "";
}

caf::error failure_options::check() const {
  auto refused = [](std::string why) { return invalid(std::move(why)); };
  if (!gpu_mttf_s && !given().empty())
    return refused(given() + " is of a run in which hosts fail: say how often, such as --gpu-mttf 50000h");
  if (join_s && !shrink)
    return refused("--join is of runs that shrink: give --shrink, too");
  if (interval_s && *interval_s == 0)
    return refused("--checkpoint-every must be longer than 0; without it, it is the best interval");
  if (life_shape && !plays)
    return refused("--life-shape is of runs that are played: say how many, such as --plays 10");
  auto asked = question({});
  return asked ? caf::none : std::move(asked.error());
}

caf::expected<failure_question> failure_options::question(failure_question x) const {
  x.spares = spares.value_or(x.spares);
  x.gpu_mttf_s = gpu_mttf_s.value_or(x.gpu_mttf_s);
  x.checkpoint_write_s = checkpoint_write_s.value_or(x.checkpoint_write_s);
  x.restart_s = restart_s.value_or(x.restart_s);
  // A restart that is quicker than the default detection also detects failures in time.
  x.detection_s = detection_s.value_or(std::min(x.detection_s, x.restart_s));
  x.repair_s = repair_s.value_or(x.repair_s);
  x.join_s = join_s.value_or(x.checkpoint_write_s); // as many bytes of each rank
  x.run_s = run_s.value_or(x.run_s);
  if (interval_s)
    x.interval_s = std::max(*interval_s, x.step_s); // none is shorter
  RETURN_ERROR(training::check(x));
  return x;
}

} // namespace ringmaster
