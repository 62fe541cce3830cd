#include "tools/planning/plan_report.hpp"

#include "planner/plans/launch_options.hpp"
#include "planner/plans/undivided.hpp"
#include "planner/search/plan_outcome.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/planning/failures/failure_report.hpp"
#include "tools/planning/plan_tables.hpp"
#include "tools/simulated_training/transformer_options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

using namespace training;

namespace {

constexpr size_t pareto_shown = 12;

std::string_view framework_title(training_framework x) {
  return x == training_framework::megatron ? "Megatron-LM" : "torchtitan (TOML)";
}

constexpr double day = 24 * 3600;

/// The best plan as the options of a framework that can run it: of the one that was asked for, else of the first.
std::string launch_text(const plan_outcome& x, const page_format& page) {
  const auto& how = x.best.front().plan.how;
  std::string text;
  for (auto framework : {training_framework::megatron, training_framework::torchtitan}) {
    const bool is_meant = x.asked.filter.framework == training_framework::any ? text.empty()
                                                                              : x.asked.filter.framework == framework;
    if (is_meant && can_run(framework, how))
      text += fmt::format("\nThe first of them as options of {}:\n{}", framework_title(framework),
                          launch_options(framework, x.asked.trained, how, page.columns));
  }
  return text;
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

std::string rejected_text(const plan_outcome& x, const page_format& page) {
  return x.found.too_large.empty() ? ""
                                   : "\nFaster in closed form, but they do not fit:\n"
                                       + too_large_table(x.found.too_large, x.asked.system, page);
}

std::string pareto_text(const transformer_plans& found, const page_format& page) {
  if (found.pareto.empty())
    return found.best.empty() ? ""
                              : "\n" + page.line("The Pareto front is empty: what was on it does not fit as simulated");
  std::vector<planned> shown;
  for (size_t i = 0; i < std::min(pareto_shown, found.pareto.size()); ++i) {
    const auto last = found.pareto.size() - 1;
    shown.push_back(found.pareto[found.pareto.size() <= pareto_shown ? i : i * last / (pareto_shown - 1)]);
  }
  return "\n"
         + page.line(fmt::format(
           "The Pareto front of time and memory in closed form ({}{}):", counted(found.pareto.size(), "plan"),
           found.pareto.size() > pareto_shown ? fmt::format(", {} of them shown", pareto_shown) : ""))
         + closed_form_table(shown, page);
}

/// Of all GPUs that are rented, at work as long as the run is; those that stand by are taken to need nothing.
double run_joules(const plan_outcome& x, const plan_figures& figures) {
  return x.asked.system.watts * x.asked.devices * figures.days * day;
}

/// "name 1.234 s, ..." of the parts that are not 0.
template <class Text>
std::string parts_text(const named_parts& parts, Text text_of) {
  std::string result;
  for (auto& [name, x] : parts)
    if (x > 0)
      result += fmt::format("{}{} {}", result.empty() ? "" : ", ", name, text_of(x));
  return result;
}

/// Days, GPU-hours and cost of the whole run.
std::string run_text(const plan_outcome& x, const plan_figures& figures) {
  if (!x.run.tokens)
    return "";
  const auto tokens = amount_text(*x.run.tokens);
  if (figures.days <= 0)
    return fmt::format("run: {} tokens are not trained in any time: see the failures below", tokens);
  auto text = fmt::format("run: {} tokens in {:.1f} days, {} GPU-hours", tokens, figures.days,
                          grouped_text(figures.gpu_hours));
  if (spare_gpus(x) > 0)
    text += fmt::format(" with {} that stand by", counted(spare_gpus(x), "GPU"));
  if (x.run.price)
    text += ", cost " + grouped_text(figures.cost);
  if (x.failures)
    text += fmt::format(", with the failures below ({}: {:.2f} % goodput)", best_way_text(*x.failures),
                        100 * goodput_of(x));
  return text;
}

/// What an iteration of the best comes to: rates, seconds and bytes by part, energy, the run.
std::string figures_text(const plan_outcome& x, const confirmed_plan& first, const page_format& page) {
  const auto& plan = first.plan;
  const auto figures = figures_of(x, plan, first.seconds());
  auto part_of_time = [&](double seconds) { return fmt::format("{:.1f} %", 100 * seconds / plan.cost.seconds); };
  auto in_seconds = [](double seconds) { return fmt::format("{:.3f} s", seconds); };
  auto text = "\n"
              + page.line(fmt::format("The first of them, {}: {} tokens/s, {} tokens/s and {:.0f} TFLOP/s a GPU, MFU "
                                      "{:.1f} % of {}'s peak, counting {} attention",
                                      first.simulated ? "as simulated" : "in closed form",
                                      grouped_text(figures.tokens_a_second),
                                      grouped_text(figures.tokens_a_second / x.asked.devices), figures.flops / 1e12,
                                      100 * figures.mfu, name_of(plan.how.computed_in), name_of(plan.how.counts())))
              + page.line((first.simulated ? "time in closed form: " : "time: ")
                            + parts_text(seconds_by_part(plan.cost), part_of_time),
                          2);
  if (const auto hidden = parts_text(hidden_by_part(plan.cost), in_seconds); !hidden.empty())
    text += page.line("hidden behind other work: " + hidden, 2);
  std::string memory;
  for (auto& [name, bytes] : bytes_by_part(memory_of(x.asked.trained, plan.how)))
    memory += fmt::format("{} {:.1f}, ", name, bytes / giga);
  text += page.line(fmt::format("memory: {}in all {:.1f} of {:.1f} GB", memory, plan.cost.memory_bytes / giga,
                                x.asked.system.room_bytes() / giga),
                    2);
  for (auto& each : notes_of(x))
    text += page.bullet(each);
  if (plan.cost.host_bytes > 0)
    text += page.line(fmt::format("off-loaded: {:.1f} of a GPU's {:.1f} GB of its host's memory",
                                  plan.cost.host_bytes / giga, x.asked.system.host_memory_bytes / giga),
                      2);
  if (figures.joules > 0)
    text += page.line(
      fmt::format(
        "energy: {} kWh a thousand iterations{}, of the GPUs alone", grouped_text(figures.joules * 1000 / 3.6e6),
        figures.days > 0 ? fmt::format(", {} MWh the run", grouped_text(run_joules(x, figures) / 3.6e9)) : ""),
      2);
  const auto run = run_text(x, figures);
  return run.empty() ? text : text + page.line(run, 2);
}

std::string joined(const std::vector<uint32_t>& all) {
  return all.empty() ? "none near it" : fmt::format("{}", fmt::join(all, ", "));
}

/// Why nothing divides, and what would.
std::string undivided_text(const plan_outcome& x, const page_format& page) {
  auto text = "\n"
              + page.line(
                fmt::format("No plan divides the model and the batch among {}{}.", counted(x.asked.devices, "GPU"),
                            x.near.filters.empty() ? ""
                                                   : fmt::format(" as the options say; without --{} some do",
                                                                 fmt::join(x.near.filters, ", or without --"))));
  const auto reasons = undivided_of(x.asked);
  for (auto& each : reasons)
    text += page.bullet(each);
  if (reasons.empty() || !x.near.devices.empty() || !x.near.batches.empty())
    text += page.line(fmt::format("Numbers of GPUs that do: {}. Global batches that do: {}.", joined(x.near.devices),
                                  joined(x.near.batches)));
  return text;
}

/// Why there is no plan, and what would have one.
std::string nothing_text(const plan_outcome& x, const page_format& page) {
  if (x.found.smallest.empty())
    return undivided_text(x, page);
  auto& nearest = x.found.smallest.front();
  return "\n" + page.line(fmt::format("None fits. The nearest lacks {}:", lack_text(x, nearest)))
         + closed_form_table({nearest}, page)
         + page.line(!x.least_devices       ? "How many GPUs it takes was not found out: the search was interrupted."
                     : *x.least_devices > 0 ? fmt::format("It fits on {} GPUs.", *x.least_devices)
                                            : std::string{"None fits on up to 65,536 GPUs."})
         + rejected_text(x, page);
}

} // namespace

std::string report_of(const plan_outcome& x, const page_format& page) {
  auto& m = x.asked.trained;
  auto text = page.line(fmt::format("{} ({}) on {} x {} in {}, a global batch of {} of {}", m.name, parameters_text(m),
                                    x.asked.devices, x.asked.system.name, name_of(x.asked.filter.computed_in),
                                    counted(x.asked.global_batch, "sequence"), m.sequence))
              + page.line(fmt::format(
                "{}, of which {} fit in {:.1f} GB, {:.1f} GB being left free{}", counted(x.found.evaluated, "plan"),
                x.found.fitting, x.asked.system.room_bytes() / giga, x.asked.system.reserved_bytes / giga,
                x.found.interrupted  ? "; the search was interrupted"
                : x.some_unconfirmed ? "; interrupted: the closed form stands for plans that were not simulated"
                                     : ""));
  if (m.positions > 0 && m.sequence > m.positions)
    text += page.line(fmt::format("sequences of {} are beyond the {} positions that {} was made for{}", m.sequence,
                                  m.positions, m.name,
                                  m.position_rows > 0 ? ": its embedding of positions has no more rows" : ""));
  if (m.text_only)
    text += page.line("of a model that sees or hears, too: that part is left out");
  if (auto what = not_calibrated(x.asked))
    text += page.line("not calibrated: " + *what);
  if (x.found.best.empty())
    return text + nothing_text(x, page);
  return text + legend_of(page) + "\n" + best_table(x, page) + "\nThe same plans, with the error of an estimate:\n"
         + error_table(x, page) + figures_text(x, x.best.front(), page) + launch_text(x, page)
         + (x.failures ? "\n" + report_of(*x.failures, page) : "") + rejected_text(x, page)
         + pareto_text(x.found, page);
}

} // namespace ringmaster
