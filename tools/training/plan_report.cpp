#include "tools/training/plan_report.hpp"

#include "runtime/text/json_value.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

constexpr size_t pareto_shown = 12;
constexpr double giga = 1e9;

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

std::string json_of(const planned& x) {
  auto& how = x.how;
  return fmt::format(
    R"({{"tensor":{},"data":{},"pipeline":{},"micro_batch":{},"chunks":{},"schedule":"{}","recompute":"{}",)"
    R"("sequence_parallel":{},"zero":{},"time_s":{:.17g},"mfu_percent":{:.17g},"memory_bytes":{:.0f},"bubble_s":{:.17g},)"
    R"("communication_s":{:.17g}}})",
    how.shape.tensor, how.shape.data, how.shape.pipeline, how.micro_batch, how.chunks, name_of(how.schedule),
    name_of(how.again), how.sequence_parallel, how.zero, x.cost.seconds, 100 * x.cost.mfu, x.cost.memory_bytes,
    x.cost.bubble, x.cost.communication);
}

template <class List, class Text>
std::string joined(const List& all, Text text) {
  std::string result{"["};
  for (auto& x : all)
    result.append(result.size() == 1 ? "" : ",").append(text(x));
  result += ']';
  return result;
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
    "\nThe Pareto front of time and memory ({} plans{}):\n{}\n", found.pareto.size(),
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

std::string json_of(const search_question& asked, const searched& x) {
  const auto mfu = asked.costs->mfu_percent(x.trained, asked.ranks, x.time);
  auto& m = x.trained;
  return fmt::format(
    R"({{"strategy":"{}","tensor":{},"data":{},"micro_batch":{},"chunks":{},"time_s":{:.17g},"end_s":{:.17g},)"
    R"("peak_memory":{},"mfu_percent":{},"bubble_fraction":{:.17g},"communication_fraction":{:.17g}}})",
    x.which->name, m.tensor, m.data, m.micro_batch, m.chunks, x.time, x.end, x.peak_memory,
    mfu < 0 ? "null" : fmt::format("{:.17g}", mfu), x.bubble, x.communication);
}

} // namespace

std::string report_of(const plan_question& asked, const transformer_plans& found,
                      const std::vector<confirmed_plan>& best) {
  const auto room = asked.system.memory_bytes - asked.system.reserved_bytes;
  auto text = fmt::format("{} ({:.1f} billion parameters) on {} x {}, a global batch of {} sequences of {}\n"
                          "{} plans, of which {} fit in {:.1f} GB\n",
                          asked.trained.name, parameters_of(asked.trained) / giga, asked.devices, asked.system.name,
                          asked.global_batch, asked.trained.sequence, found.evaluated, found.fitting, room / giga);
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
  auto list = [](const std::vector<planned>& all) { return joined(all, [](auto& x) { return json_of(x); }); };
  auto confirmed = joined(best, [](auto& x) {
    auto object = json_of(x.plan);
    object.pop_back();
    return x.simulated ? object
                           + fmt::format(R"(,"simulated_time_s":{:.17g},"simulated_memory_bytes":{:.0f}}})",
                                         x.simulated->seconds, x.simulated->memory_bytes)
                       : object + R"(,"simulated_time_s":null,"simulated_memory_bytes":null})";
  });
  return fmt::format(
    R"({{"model":{},"system":{},"gpus":{},"global_batch":{},"evaluated":{},"fitting":{},"best":{},"too_large":{},"pareto":{}}})"
    "\n",
    json_text(asked.trained.name), json_text(asked.system.name), asked.devices, asked.global_batch, found.evaluated,
    found.fitting, confirmed, list(found.too_large), list(found.pareto));
}

std::string report_of(const search_question& asked, const search_outcome& found) {
  auto text = fmt::format("{} layers, a global batch of {} on {} ranks, cost model {}: {} candidates, {} simulated",
                          asked.layers, asked.global_batch, asked.ranks, asked.costs->name(), found.candidates,
                          found.simulated);
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
  text += fmt::format("\nThe Pareto front of time and memory{}:\n{}",
                      found.open == 0 ? "" : ", of those simulated", header);
  for (auto& x : found.pareto)
    text += line_of(asked, x);
  return text;
}

std::string json_of(const search_question& asked, const search_outcome& found) {
  auto list = [&](const std::vector<searched>& all) { return joined(all, [&](auto& x) { return json_of(asked, x); }); };
  return fmt::format(
    R"({{"cost_model":"{}","ranks":{},"layers":{},"global_batch":{},"candidates":{},"simulated":{},"open":{},"open_best":{},"best":{},"plain":{},"pareto":{}}})"
    "\n",
    asked.costs->name(), asked.ranks, asked.layers, asked.global_batch, found.candidates, found.simulated,
    found.open, found.open_best, list(found.best), found.plain ? json_of(asked, *found.plain) : "null",
    list(found.pareto));
}

} // namespace ringmaster
