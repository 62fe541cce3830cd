#include "tools/planning/plan_report.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/transformer/plans/undivided.hpp"
#include "runtime/training/transformer/systems/software_generation.hpp"
#include "tools/options/help_text.hpp"
#include "tools/planning/launch_options.hpp"
#include "tools/planning/plan_notes.hpp"
#include "tools/planning/plan_text.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

/// Filled, in lines of at most 100 columns.
std::string folded(std::string text) {
  constexpr size_t width = 100;
  for (size_t begin = 0; text.size() - begin > width;) {
    const auto cut = text.rfind(' ', begin + width);
    if (cut == text.npos || cut <= begin)
      break;
    text[cut] = '\n';
    begin = cut + 1;
  }
  return text + "\n";
}

constexpr size_t pareto_shown = 12;

std::string_view framework_title(training_framework x) {
  return x == training_framework::megatron ? "Megatron-LM" : "torchtitan (TOML)";
}

constexpr double hour = 3600, day = 24 * hour;

/// What differences mean, and where that figure is from.
std::string error_text(const estimate_error& error, size_t others, size_t ties) {
  auto text = fmt::format("Differences of less than {:.0f} % mean nothing", 100 * error.tie);
  if (error.assumed_because)
    text += fmt::format(": that error is assumed, since {}.", *error.assumed_because);
  else if (error.least > 1)
    text += fmt::format(": beside published trainings estimates are {:.0f} to {:.0f} % too fast.",
                        100 * (1 - 1 / error.least), 100 * (1 - 1 / error.most));
  else
    text += fmt::format(": beside published trainings, each with the software that it ran, estimates are off by {:.0f} "
                        "% in the mean.",
                        100 * error.tie);
  if (others == 0)
    return text;
  return text
         + fmt::format(" {} {} with the first.", ties == 0 ? "None" : fmt::to_string(ties),
                       ties == 1  ? "other plan is a tie"
                       : ties > 1 ? "other plans are ties"
                                  : "of the other plans is a tie");
}

/// Each of the best with the error of its time, whether it is a tie with the first one, and what can run it.
std::string ties_text(const plan_outcome& x) {
  const auto first = x.best.front().seconds();
  std::string rows;
  size_t number = 0, ties = 0;
  for (auto& each : x.best) {
    const auto band = band_of(x.asked, each.seconds(), first);
    const bool is_first = ++number == 1, tie = band.tie && !is_first;
    std::string programs;
    for (auto framework : {training_framework::megatron, training_framework::torchtitan})
      if (can_run(framework, each.plan.how))
        programs += fmt::format("{}{}", programs.empty() ? "" : ", ", name_of(framework));
    rows += fmt::format("{:>2} {:>9.3f} {:>9.3f} to {:>9.3f}  {:<5} {}\n", number, each.seconds(), band.least,
                        band.most,
                        is_first ? "first"
                        : tie    ? "tie"
                                 : "-",
                        programs.empty() ? "none" : programs);
    ties += tie;
  }
  return fmt::format("\nThe same plans, with the error of an estimate:\n # {:>9} {:>22}  {:<5} {}\n{}", "seconds",
                     "error band", "", "frameworks that run it", rows)
         + folded(error_text(error_of(x.asked), x.best.size() - 1, ties));
}

/// The best plan as the options of a framework that can run it: of the one that was asked for, else of the first.
std::string launch_text(const plan_outcome& x) {
  const auto& how = x.best.front().plan.how;
  std::string text;
  for (auto framework : {training_framework::megatron, training_framework::torchtitan}) {
    const bool is_meant = x.asked.filter.framework == training_framework::any ? text.empty()
                                                                              : x.asked.filter.framework == framework;
    if (is_meant && can_run(framework, how))
      text += fmt::format("\nThe first of them as options of {}:\n{}", framework_title(framework),
                          launch_options(framework, x.asked.trained, how));
  }
  return text;
}

/// How much slower than the best, and what a plan has more of.
std::string why_slower(const planned& x, const planned& best) {
  auto parts = seconds_by_part(x.cost);
  const auto others = seconds_by_part(best.cost);
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].second -= others[i].second;
  const auto most = std::ranges::max_element(parts, {}, [](auto& part) { return part.second; });
  return fmt::format("{:+.2f} {}", x.cost.seconds - best.cost.seconds,
                     most->second > 0 ? most->first : "the same in all");
}

std::string text_of(const confirmed_plan& x, const gpu_system& on) {
  if (!x.simulated)
    return "not simulated: " + render(x.problem);
  return fmt::format("{:>9.3f}{}{:>8.1f}{}", x.simulated->seconds, x.by_shorter_steps() ? '*' : ' ',
                     x.simulated->memory_bytes / giga, x.simulated->fits(on) ? "" : ", does not fit");
}

/// Which of the best were simulated, and how far: nothing is left out without a word.
std::string confirmed_text(const std::vector<confirmed_plan>& best) {
  const auto counts = counts_of(best);
  std::vector<std::string> parts;
  if (counts.whole > 0)
    parts.push_back(fmt::format("{} by the whole step", counts.whole));
  if (counts.by_shorter_steps > 0)
    parts.push_back(fmt::format("{} (*) by two shorter steps, since each further micro-batch takes as long as the last",
                                counts.by_shorter_steps));
  if (counts.closed_form > 0)
    parts.push_back(fmt::format("{} not: in closed form alone, for the reason beside it", counts.closed_form));
  return folded(fmt::format("confirmed by simulation: {}", fmt::join(parts, "; ")));
}

/// Model cards count a token's parameters with the embedding, or without.
std::string parameters_text(const language_model& m) {
  auto text = fmt::format("{:.1f} billion parameters", parameters_of(m) / giga);
  if (m.experts.count > 0) {
    const auto active = active_parameters_of(m);
    text += fmt::format(", {:.1f} active", active / giga);
    if (!m.tied) // else it is at work at the output
      text += fmt::format(", {:.1f} without the embedding", (active - parameter_counts_of(m).embedding) / giga);
  }
  return m.multi_token == 0 ? text
                            : text + fmt::format(", with {} for further tokens", counted(m.multi_token, "module"));
}

std::string lack_text(const plan_outcome& x, const planned& plan) {
  const auto lack = lack_of(plan, x.asked.system);
  const auto of_host = fmt::format("{:.1f} GB of the host's memory", lack.host / giga);
  if (lack.host == 0)
    return fmt::format("{:.1f} GB", lack.device / giga);
  return lack.device == 0 ? of_host : fmt::format("{:.1f} GB, and {}", lack.device / giga, of_host);
}

std::string rejected_lines(const plan_outcome& x) {
  std::string text;
  for (auto& each : x.found.too_large)
    text += fmt::format("{}  {} too much\n", plan_line(each), lack_text(x, each));
  return text.empty() ? "" : fmt::format("\nFaster, but they do not fit:\n{}\n{}", plan_header(), text);
}

std::string pareto_lines(const transformer_plans& found) {
  if (found.pareto.empty())
    return found.best.empty() ? "" : "\nThe Pareto front is empty: what was on it does not fit as simulated\n";
  std::string text = fmt::format(
    "\nThe Pareto front of time and memory ({}{}):\n{}\n", counted(found.pareto.size(), "plan"),
    found.pareto.size() > pareto_shown ? fmt::format(", {} of them shown", pareto_shown) : "", plan_header());
  for (size_t i = 0; i < std::min(pareto_shown, found.pareto.size()); ++i) {
    const auto last = found.pareto.size() - 1;
    text += plan_line(found.pareto[found.pareto.size() <= pareto_shown ? i : i * last / (pareto_shown - 1)]) + "\n";
  }
  return text;
}

/// What failures leave of the time, by the best way to go on with the spares that there are; all where they are not
/// asked for.
double goodput_of(const plan_outcome& x) {
  return x.failures ? x.failures->best_goodput() : 1;
}

/// That stand by: they are rented, too.
uint32_t spare_gpus(const plan_outcome& x) {
  return x.failures ? x.failures->asked.spares * x.failures->asked.gpus_per_host : 0;
}

/// Of all GPUs that are rented, at work as long as the run is; those that stand by are taken to need nothing.
double run_joules(const plan_outcome& x, const plan_figures& figures) {
  return x.asked.system.watts * x.asked.devices * figures.days * day;
}

/// What an iteration of the best comes to: rates, seconds and bytes by part, energy, the run.
std::string figures_text(const plan_outcome& x, const confirmed_plan& first) {
  const auto& plan = first.plan;
  const auto figures = figures_of(x, plan, first.seconds());
  auto text = fmt::format("\nThe first of them, {}: {} tokens/s, {} tokens/s and {:.0f} TFLOP/s a GPU, MFU {:.1f} % of "
                          "{}'s peak, counting {} attention\n",
                          first.simulated ? "as simulated" : "in closed form", grouped_text(figures.tokens_a_second),
                          grouped_text(figures.tokens_a_second / x.asked.devices), figures.flops / 1e12,
                          100 * figures.mfu, name_of(plan.how.computed_in), name_of(plan.how.counts()));
  text += first.simulated ? "in closed form, time:  " : "time:  ";
  for (auto& [name, seconds] : seconds_by_part(plan.cost))
    if (seconds > 0)
      text += fmt::format(" {} {:.1f} %", name, 100 * seconds / plan.cost.seconds);
  std::string hidden;
  for (auto& [name, seconds] : hidden_by_part(plan.cost))
    if (seconds > 0)
      hidden += fmt::format(" {} {:.3f} s", name, seconds);
  text += hidden.empty() ? "\n" : fmt::format("\nhidden behind other work: {}\n", hidden);
  text += "memory:";
  for (auto& [name, bytes] : bytes_by_part(memory_of(x.asked.trained, plan.how)))
    text += fmt::format(" {} {:.1f}", name, bytes / giga);
  text += fmt::format(", in all {:.1f} of {:.1f} GB\n", plan.cost.memory_bytes / giga,
                      x.asked.system.room_bytes() / giga);
  for (auto& each : notes_of(x))
    text += bulleted(each);
  if (plan.cost.host_bytes > 0)
    text += fmt::format("off-loaded: {:.1f} of a GPU's {:.1f} GB of its host's memory\n", plan.cost.host_bytes / giga,
                        x.asked.system.host_memory_bytes / giga);
  if (figures.joules > 0)
    text += fmt::format(
      "energy: {} kWh a thousand iterations{}, of the GPUs alone\n", grouped_text(figures.joules * 1000 / 3.6e6),
      figures.days > 0 ? fmt::format(", {} MWh the run", grouped_text(run_joules(x, figures) / 3.6e9)) : "");
  if (figures.days > 0)
    text += fmt::format("run:    {} tokens in {:.1f} days, {} GPU-hours{}{}{}\n", amount_text(*x.run.tokens),
                        figures.days, grouped_text(figures.gpu_hours),
                        spare_gpus(x) > 0 ? fmt::format(" with {} that stand by", counted(spare_gpus(x), "GPU")) : "",
                        x.run.price ? ", cost " + grouped_text(figures.cost) : "",
                        x.failures ? fmt::format(", with the failures below ({}: {:.2f} % goodput)",
                                                 x.failures->best_way(), 100 * goodput_of(x))
                                   : "");
  else if (x.run.tokens)
    text += fmt::format("run:    {} tokens are not trained in any time: see the failures below\n",
                        amount_text(*x.run.tokens));
  return text;
}

std::string joined(const std::vector<uint32_t>& all) {
  return all.empty() ? "none near it" : fmt::format("{}", fmt::join(all, ", "));
}

/// Why there is no plan, and what would have one.
std::string nothing_text(const plan_outcome& x) {
  if (x.found.smallest.empty()) {
    std::string text = fmt::format("\nNo plan divides the model and the batch among {}{}.",
                                   counted(x.asked.devices, "GPU"),
                                   x.near.filters.empty() ? ""
                                                          : fmt::format(" as the options say; without --{} some do",
                                                                        fmt::join(x.near.filters, ", or without --")));
    const auto reasons = undivided_of(x.asked);
    if (!reasons.empty())
      text += "\n";
    for (auto& each : reasons)
      text += bulleted(each);
    if (reasons.empty() || !x.near.devices.empty() || !x.near.batches.empty())
      text += fmt::format("{}Numbers of GPUs that do: {}. Global batches that do: {}.\n", reasons.empty() ? " " : "",
                          joined(x.near.devices), joined(x.near.batches));
    return text;
  }
  auto& nearest = x.found.smallest.front();
  return fmt::format("\nNone fits. The nearest lacks {}:\n{}\n{}\n{}\n{}", lack_text(x, nearest), plan_header(),
                     plan_line(nearest),
                     !x.least_devices       ? "How many GPUs it takes was not found out: the search was interrupted."
                     : *x.least_devices > 0 ? fmt::format("It fits on {} GPUs.", *x.least_devices)
                                            : std::string{"None fits on up to 65,536 GPUs."},
                     rejected_lines(x));
}

} // namespace

estimate_error error_of(const plan_question& asked) {
  return error_of_estimates(asked.system, {.experts = asked.trained.experts.count > 0,
                                           .flash = asked.filter.attention == attention_kernel::flash,
                                           .computed_in = asked.filter.computed_in});
}

time_band band_of(const plan_question& asked, double seconds, double first) {
  const auto error = error_of(asked);
  return {seconds * error.least, seconds * error.most, seconds <= first * (1 + error.tie)};
}

confirmation_counts counts_of(const std::vector<confirmed_plan>& best) {
  confirmation_counts result;
  for (auto& x : best)
    ++(!x.simulated ? result.closed_form : x.by_shorter_steps() ? result.by_shorter_steps : result.whole);
  return result;
}

plan_figures figures_of(const plan_outcome& x, const planned& plan, double seconds_each) {
  auto& m = x.asked.trained;
  const auto tokens = static_cast<double>(x.asked.global_batch) * m.sequence;
  const bool whole = plan.how.counts() == counted_scores::full;
  plan_figures result;
  result.mfu = plan.cost.mfu * plan.cost.seconds / seconds_each;
  result.tokens_a_second = tokens / seconds_each;
  result.flops = flops_of(m, x.asked.global_batch, whole) / seconds_each / x.asked.devices;
  result.joules = x.asked.system.watts * x.asked.devices * seconds_each;
  if (x.run.tokens && goodput_of(x) >= next_to_nothing) {
    const auto seconds = *x.run.tokens / result.tokens_a_second / goodput_of(x);
    result.days = seconds / day;
    result.gpu_hours = seconds / hour * (x.asked.devices + spare_gpus(x));
    result.cost = result.gpu_hours * x.run.price.value_or(0);
  }
  return result;
}

std::string report_of(const plan_outcome& x) {
  auto& m = x.asked.trained;
  auto text = fmt::format("{} ({}) on {} x {} in {}, a global batch of {} of {}\n"
                          "{}, of which {} fit in {:.1f} GB, {:.1f} GB being left free{}\n",
                          m.name, parameters_text(m), x.asked.devices, x.asked.system.name,
                          name_of(x.asked.filter.computed_in), counted(x.asked.global_batch, "sequence"), m.sequence,
                          counted(x.found.evaluated, "plan"), x.found.fitting, x.asked.system.room_bytes() / giga,
                          x.asked.system.reserved_bytes / giga,
                          x.found.interrupted ? "; the search was interrupted"
                          : x.some_unconfirmed
                            ? "; interrupted: the closed form stands for plans that were not simulated"
                            : "");
  if (m.positions > 0 && m.sequence > m.positions)
    text += fmt::format("sequences of {} are beyond the {} positions that {} was made for{}\n", m.sequence, m.positions,
                        m.name, m.position_rows > 0 ? ": its embedding of positions has no more rows" : "");
  if (m.text_only)
    text += "of a model that sees or hears, too: that part is left out\n";
  if (auto what = not_calibrated(x.asked))
    text += filled("not calibrated: " + *what);
  if (x.found.best.empty())
    return text + nothing_text(x);
  text += "t, c, d, e, p: tensor-, context-, data-, expert- and pipeline-parallel ranks; v: chunks of a stage\n"
          "a step in closed form, then as simulated; beside the first: how many seconds longer, most of them for "
          "what\n";
  text += fmt::format("\n{} simulated peak, GB  beside the first\n", plan_header());
  for (auto& each : x.best)
    text += fmt::format("{} {}{}\n", plan_line(each.plan), text_of(each, x.asked.system),
                        &each == &x.best.front() ? "" : "  " + why_slower(each.plan, x.best.front().plan));
  return text + confirmed_text(x.best) + ties_text(x) + figures_text(x, x.best.front()) + launch_text(x)
         + (x.failures ? "\n" + report_of(*x.failures) : "") + rejected_lines(x) + pareto_lines(x.found);
}

} // namespace ringmaster
