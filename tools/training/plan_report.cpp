#include "tools/training/plan_report.hpp"

#include "runtime/text/json_writer.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

constexpr size_t pareto_shown = 12;

double compute_of(const iteration_estimate& x) {
  return x.seconds - x.bubble - x.communication;
}

/// How much slower than the best, and what a plan has more of.
std::string why_slower(const planned& x, const planned& best) {
  struct part {
    const char* name;
    double more;
  };
  const part parts[] = {{"pipeline bubble", x.cost.bubble - best.cost.bubble},
                        {"communication", x.cost.communication - best.cost.communication},
                        {"computing", compute_of(x.cost) - compute_of(best.cost)}};
  auto* most = &parts[0];
  for (auto& each : parts)
    if (each.more > most->more)
      most = &each;
  return fmt::format("{:+.2f} s: {}", x.cost.seconds - best.cost.seconds,
                     most->more > 0 ? most->name : "the same in all");
}

const char* plan_header = "   t    d    p  micro   v  schedule    recompute  seq  ZeRO       time      MFU     memory";

std::string line_of(const planned& x) {
  auto& how = x.how;
  return fmt::format("{:>4} {:>4} {:>4} {:>6} {:>3}  {:<11} {:<10} {:<4} {:>4} {:>8.3f} s {:>6.2f} % {:>7.1f} GB",
                     how.shape.tensor, how.shape.data, how.shape.pipeline, how.micro_batch, how.chunks,
                     name_of(how.schedule), name_of(how.again), how.sequence_parallel ? "yes" : "no", how.zero,
                     x.cost.seconds, 100 * x.cost.mfu, x.cost.memory_bytes / giga);
}

/// Leaves the object open.
void begin_json(json_writer& json, const planned& x) {
  auto& how = x.how;
  json.object()
    .member("tensor", how.shape.tensor)
    .member("data", how.shape.data)
    .member("pipeline", how.shape.pipeline)
    .member("micro_batch", how.micro_batch)
    .member("chunks", how.chunks)
    .member("schedule", name_of(how.schedule))
    .member("recompute", name_of(how.again))
    .member("sequence_parallel", how.sequence_parallel)
    .member("zero", how.zero)
    .member("time_s", x.cost.seconds)
    .member("mfu_percent", 100 * x.cost.mfu)
    .key("memory_bytes")
    .fixed(x.cost.memory_bytes, 0)
    .member("bubble_s", x.cost.bubble)
    .member("communication_s", x.cost.communication);
}

void write_json(json_writer& json, const confirmed_plan& x) {
  begin_json(json, x.plan);
  if (x.simulated)
    json.member("simulated_time_s", x.simulated->seconds)
      .key("simulated_memory_bytes")
      .fixed(x.simulated->memory_bytes, 0);
  else
    json.key("simulated_time_s").null().key("simulated_memory_bytes").null();
  json.end();
}

std::string text_of(const confirmed_plan& x, double room) {
  if (!x.simulated)
    return "not simulated: " + x.problem;
  return fmt::format("{:>8.3f} s {:>7.1f} GB{}", x.simulated->seconds, x.simulated->memory_bytes / giga,
                     x.simulated->memory_bytes > room ? ", does not fit" : "");
}

std::string rejected_lines(const transformer_plans& found, double room) {
  std::string text;
  for (auto& x : found.too_large)
    text += fmt::format("{}  {:.1f} GB too much\n", line_of(x), (x.cost.memory_bytes - room) / giga);
  return text.empty() ? "" : fmt::format("\nFaster, but they do not fit:\n{}\n{}", plan_header, text);
}

std::string pareto_lines(const transformer_plans& found) {
  std::string text = fmt::format(
    "\nThe Pareto front of time and memory ({}{}):\n{}\n", counted(found.pareto.size(), "plan"),
    found.pareto.size() > pareto_shown ? fmt::format(", {} of them shown", pareto_shown) : "", plan_header);
  for (size_t i = 0; i < std::min(pareto_shown, found.pareto.size()); ++i) {
    const auto last = found.pareto.size() - 1;
    text += line_of(found.pareto[found.pareto.size() <= pareto_shown ? i : i * last / (pareto_shown - 1)]) + "\n";
  }
  return text;
}

std::string choices_of(const searched& x) {
  auto& m = x.trained;
  return fmt::format("{:<15} {:>4} {:>4} {:>6} {:>4}", x.which->name, m.tensor == 0 ? 1 : m.tensor,
                     m.data == 0 ? 1 : m.data, m.micro_batch, m.chunks);
}

std::string line_of(const search_question& asked, const searched& x) {
  const auto mfu = asked.costs->mfu_percent(x.trained, asked.ranks, x.time);
  return fmt::format("{} {:>12.6g} {:>8} {:>8.2f} % {:>9.2f} % {:>16}\n", choices_of(x), x.time,
                     mfu < 0 ? "" : fmt::format("{:.2f} %", mfu), 100 * x.bubble, 100 * x.communication, x.peak_memory);
}

void write_json(json_writer& json, const search_question& asked, const searched& x) {
  const auto mfu = asked.costs->mfu_percent(x.trained, asked.ranks, x.time);
  auto& m = x.trained;
  json.object()
    .member("strategy", x.which->name)
    .member("tensor", m.tensor)
    .member("data", m.data)
    .member("micro_batch", m.micro_batch)
    .member("chunks", m.chunks)
    .member("time_s", x.time)
    .member("end_s", x.end)
    .member("peak_memory", x.peak_memory)
    .key("mfu_percent");
  mfu < 0 ? json.null() : json.value(mfu);
  json.member("bubble_fraction", x.bubble).member("communication_fraction", x.communication).end();
}

} // namespace

std::string report_of(const plan_question& asked, const transformer_plans& found,
                      const std::vector<confirmed_plan>& best) {
  const auto room = asked.system.memory_bytes - asked.system.reserved_bytes;
  auto text = fmt::format("{} ({:.1f} billion parameters) on {} x {}, a global batch of {} of {}\n"
                          "{}, of which {} fit in {:.1f} GB\n",
                          asked.trained.name, parameters_of(asked.trained) / giga, asked.devices, asked.system.name,
                          counted(asked.global_batch, "sequence"), asked.trained.sequence,
                          counted(found.evaluated, "plan"), found.fitting, room / giga);
  if (found.best.empty())
    return text
           + (found.too_large.empty() ? "\nNo plan divides the model and the batch among so many devices.\n"
                                      : "\nNone fits.\n" + rejected_lines(found, room));
  text += fmt::format("\n{}   simulated, and its peak  estimate beside the first's\n", plan_header);
  for (auto& x : best)
    text += fmt::format("{}  {:<24}  {}\n", line_of(x.plan), text_of(x, room),
                        &x == &best.front() ? "" : why_slower(x.plan, best.front().plan));
  return text + rejected_lines(found, room) + pareto_lines(found);
}

std::string json_of(const plan_question& asked, const transformer_plans& found,
                    const std::vector<confirmed_plan>& best) {
  json_writer json;
  json.object()
    .member("model", asked.trained.name)
    .member("system", asked.system.name)
    .member("gpus", asked.devices)
    .member("global_batch", asked.global_batch)
    .member("evaluated", found.evaluated)
    .member("fitting", found.fitting)
    .list("best");
  for (auto& x : best)
    write_json(json, x);
  json.end();
  for (auto [name, plans] : {std::pair{"too_large", &found.too_large}, {"pareto", &found.pareto}}) {
    json.list(name);
    for (auto& x : *plans) {
      begin_json(json, x);
      json.end();
    }
    json.end();
  }
  return json.end().take() + "\n";
}

std::string report_of(const search_question& asked, const search_outcome& found) {
  auto text = fmt::format("{}, a global batch of {} on {}, cost model {}: {}, {} simulated",
                          counted(asked.layers, "layer"), asked.global_batch, counted(asked.ranks, "rank"),
                          asked.costs->name(), counted(found.candidates, "candidate"), found.simulated);
  if (const auto rest = found.candidates - found.simulated - found.open; rest > 0)
    text += fmt::format("; {} are slower or larger by lower bounds", rest);
  if (found.open > 0)
    text += fmt::format("; {} would take too long to simulate, of which {} might be among the best", found.open,
                        found.open_best);
  text += "\n\n";
  if (found.best.empty())
    return text
           + (found.candidates == 0
                ? "No strategy can train these layers and this batch on so many ranks.\n"
                : "None was simulated that fits: take more --memory, or fewer ranks or micro-batches.\n");
  const auto header = fmt::format("{:<15} {:>4} {:>4} {:>6} {:>4} {:>12} {:>8} {:>10} {:>11} {:>16}\n", "strategy", "t",
                                  "d", "micro", "v", fmt::format("time, {}", asked.costs->time_unit()), "MFU", "bubble",
                                  "comm.", fmt::format("peak, {}", asked.costs->memory_unit()));
  text += header;
  for (auto& x : found.best)
    text += line_of(asked, x);
  if (found.plain) {
    text += "\nPlain data parallel with accumulation, at its fastest:\n" + line_of(asked, *found.plain);
    const auto gain = found.best.empty() ? 0 : 1 - found.best.front().time / found.plain->time;
    text += gain > 0 ? fmt::format("The best takes {:.2f} % less time.\n", 100 * gain)
                     : std::string{"Nothing beats it.\n"};
  }
  text += fmt::format("\nThe Pareto front of time and memory{}:\n{}", found.open == 0 ? "" : ", of those simulated",
                      header);
  for (auto& x : found.pareto)
    text += line_of(asked, x);
  return text;
}

std::string json_of(const search_question& asked, const search_outcome& found) {
  json_writer json;
  auto list = [&](const char* name, const std::vector<searched>& all) {
    json.list(name);
    for (auto& x : all)
      write_json(json, asked, x);
    json.end();
  };
  json.object()
    .member("cost_model", asked.costs->name())
    .member("ranks", asked.ranks)
    .member("layers", asked.layers)
    .member("global_batch", asked.global_batch)
    .member("candidates", found.candidates)
    .member("simulated", found.simulated)
    .member("open", found.open)
    .member("open_best", found.open_best);
  list("best", found.best);
  json.key("plain");
  if (found.plain)
    write_json(json, asked, *found.plain);
  else
    json.null();
  list("pareto", found.pareto);
  return json.end().take() + "\n";
}

} // namespace ringmaster
