#include "tools/planning/failures/failure_report.hpp"

#include "runtime/text/pages/text_table.hpp"
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

} // namespace ringmaster
