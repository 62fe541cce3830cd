#include "tools/planning/failures/failure_report.hpp"

#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

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

std::string line_of(const failure_question& asked, const reported_recovery& x) {
  auto& found = x.outcome;
  auto text = fmt::format("{:<34} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11.0f}", way_to_go_on(asked, found.how),
                          found.interval_s > asked.run_s ? "none" : long_duration_text(found.interval_s),
                          part_text(found.effective), part_text(found.goodput), part_text(found.waiting),
                          part_text(found.smaller), found.goodput * 86400 / asked.step_s);
  if (x.played)
    text += fmt::format("  {} ({:.2f} to {:.2f})", part_text(x.played->goodput.mean), 100 * x.played->goodput.least,
                        100 * x.played->goodput.most);
  return text + "\n";
}

void write_json(json_writer& json, const char* name, const run_spread& x) {
  json.object(name).member("mean", x.mean).member("least", x.least).member("most", x.most).end();
}

void write_json(json_writer& json, const reported_recovery& x) {
  auto& found = x.outcome;
  json.object()
    .member("recovery", name_of(found.how))
    .member("checkpoint_interval_s", found.interval_s)
    .member("effective_fraction", found.effective)
    .member("goodput_fraction", found.goodput)
    .member("waiting_fraction", found.waiting)
    .member("smaller_fraction", found.smaller)
    .member("interruptions_a_day", found.interruptions_a_day);
  if (x.played) {
    json.object("played");
    write_json(json, "effective_fraction", x.played->effective);
    write_json(json, "goodput_fraction", x.played->goodput);
    write_json(json, "waiting_fraction", x.played->waiting);
    write_json(json, "smaller_fraction", x.played->smaller);
    write_json(json, "interruptions", x.played->interruptions);
    json.end();
  }
  json.end();
}

/// One whose spares never end is not to be had. Waiting always is.
const reported_recovery& best_of(const std::vector<reported_recovery>& all) {
  const reported_recovery* best = nullptr;
  for (auto& each : all)
    if (each.outcome.how != recovery::restart && (best == nullptr || each.outcome.goodput > best->outcome.goodput))
      best = &each;
  return best != nullptr ? *best : all.front();
}

std::vector<reported_recovery> recoveries_of(const failure_answer& x, bool shrink) {
  std::vector<reported_recovery> result;
  for (auto& outcome : x.outcomes)
    if (outcome.how != recovery::shrink || shrink)
      result.push_back({outcome, {}});
  return result;
}

/// GPU-hours of an hour's worth of training that is kept.
double price_of(const failure_question& asked, double goodput) {
  const auto each = std::min(asked.gpus_per_host, asked.gpus);
  return (asked.gpus + static_cast<double>(asked.spares) * each) / std::max(goodput, 1e-9);
}

std::optional<spares_advice> cheaper_spares(const failure_question& asked, double goodput, bool shrink) {
  constexpr uint32_t more_max = 64;
  constexpr double worth_it = 0.99;
  const auto now = price_of(asked, goodput);
  std::optional<spares_advice> best;
  for (uint32_t more = 1; more <= more_max; ++more) {
    auto with = asked;
    with.spares += more;
    const auto kept = best_of(recoveries_of(answer_of(with), shrink)).outcome.goodput;
    const auto part = price_of(with, kept) / now;
    if (part < (best ? best->gpu_hours : worth_it))
      best = spares_advice{with.spares, kept, part};
  }
  return best;
}

} // namespace

caf::expected<failure_findings> find_failures(const failure_question& asked, bool shrink, uint32_t plays,
                                              double life_shape) {
  failure_findings result{asked, answer_of(asked), {}, {}};
  result.recoveries = recoveries_of(result.answer, shrink);
  result.cheaper = cheaper_spares(asked, result.best_goodput(), shrink);
  for (auto& each : result.recoveries) {
    if (plays == 0)
      break;
    auto played = play_runs(asked, each.outcome.how, each.outcome.interval_s, plays, life_shape);
    if (!played)
      return std::move(played.error());
    each.played = *played;
  }
  return result;
}

double failure_findings::best_goodput() const {
  return best_of(recoveries).outcome.goodput;
}

std::string failure_findings::best_way() const {
  return way_to_go_on(asked, best_of(recoveries).outcome.how);
}

std::string report_of(const failure_findings& found) {
  auto& x = found.asked;
  auto& a = found.answer;
  auto text = fmt::format("Failures: of {} in {} one fails every {}, {:.3g} a day, {:.0f} in {}\n",
                          counted(x.gpus, "GPU"), counted(hosts_of(x), "host"), long_duration_text(a.mttf_s),
                          86400 / a.mttf_s, x.run_s / a.mttf_s, long_duration_text(x.run_s));
  text += fmt::format("Of checkpoints that take {} each, one every {} is best (Young {}, Daly {}{})\n",
                      long_duration_text(x.checkpoint_write_s), long_duration_text(a.best_s),
                      long_duration_text(a.young_s), long_duration_text(a.daly_s),
                      std::min({a.young_s, a.daly_s, a.best_s}) > x.step_s ? "" : "; none is shorter than a step");
  text += fmt::format("A restart takes {}, a repair {}\n", long_duration_text(x.restart_s),
                      long_duration_text(x.repair_s));
  if (x.copies == 1)
    text += "The model is there once: it is lost with any host, and nobody can go on smaller\n";
  else if (x.sharded)
    text += "The optimizer's state is shared by all copies (ZeRO): who shrinks goes back to the checkpoint, too\n";
  if (x.restart_s > x.repair_s)
    text += "A restart takes longer than a repair: what goes on smaller is told to the first order only, and --plays "
            "plays it\n";
  else if (x.copies > 1 && x.checkpoint_write_s > a.mttf_s / 3)
    text += "A checkpoint takes over a third of the time between failures: goodput of what goes on smaller may be "
            "told several times too high, and --plays plays it\n";
  if (found.best_goodput() < next_to_nothing)
    text += fmt::format("Next to nothing is kept: the job fails every {}, and a restart takes {}\n",
                        long_duration_text(a.mttf_s), long_duration_text(x.restart_s));
  const auto played = std::ranges::any_of(found.recoveries, [](auto& each) { return each.played.has_value(); });
  text += fmt::format("\n{:<34} {:>10} {:>10} {:>10} {:>10} {:>10} {:>11}{}\n", "", "checkpoint", "effective",
                      "goodput", "waiting", "smaller", "steps a day", played ? "  goodput of runs played" : "");
  for (auto& each : found.recoveries)
    text += line_of(x, each);
  if (found.cheaper)
    text += fmt::format("With {} standing by (--spares {}) {} is kept: a run takes {:.2f} of the GPU-hours, theirs "
                        "included\n",
                        counted(found.cheaper->spares, "host"), found.cheaper->spares,
                        part_text(found.cheaper->goodput), found.cheaper->gpu_hours);
  return text;
}

void write_json(json_writer& json, const failure_findings& found) {
  auto& x = found.asked;
  auto& a = found.answer;
  json.object()
    .member("gpus", x.gpus)
    .member("hosts", hosts_of(x))
    .member("copies", x.copies)
    .member("sharded", x.sharded)
    .member("spares", x.spares)
    .member("gpu_mttf_s", x.gpu_mttf_s)
    .member("job_mttf_s", a.mttf_s)
    .member("interruptions_a_day", 86400 / a.mttf_s)
    .member("run_s", x.run_s)
    .member("interruptions_of_run", x.run_s / a.mttf_s)
    .member("step_s", x.step_s)
    .member("checkpoint_write_s", x.checkpoint_write_s)
    .member("restart_s", x.restart_s)
    .member("detection_s", x.detection_s)
    .member("repair_s", x.repair_s)
    .member("join_s", x.join_s)
    .member("young_interval_s", a.young_s)
    .member("daly_interval_s", a.daly_s)
    .member("best_interval_s", a.best_s)
    .list("recoveries");
  for (auto& each : found.recoveries)
    write_json(json, each);
  json.end().key("cheaper");
  if (found.cheaper)
    json.object()
      .member("spares", found.cheaper->spares)
      .member("goodput_fraction", found.cheaper->goodput)
      .member("gpu_hours_fraction", found.cheaper->gpu_hours)
      .end();
  else
    json.null();
  json.end();
}

} // namespace ringmaster
