#include "tools/plan_report.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

constexpr size_t pareto_shown = 12;
constexpr double giga = 1e9;

double compute_of(const iteration_estimate& x) {
  return x.seconds - x.bubble - x.communication;
}

/// What a plan has more of than the best one.
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
  if (x.cost.seconds - best.cost.seconds < 1e-9 * best.cost.seconds)
    return "as fast; more memory";
  return fmt::format("{:+.2f} s {}", most->more, most->name);
}

const char* plan_header = "   t    d    p  micro   v  schedule    recompute  seq  ZeRO       time      MFU     memory";

std::string line_of(const planned& x) {
  auto& how = x.how;
  return fmt::format("{:>4} {:>4} {:>4} {:>6} {:>3}  {:<11} {:<10} {:<4} {:>4} {:>8.3f} s {:>6.2f} % {:>7.1f} GB", how.shape.tensor,
                     how.shape.data, how.shape.pipeline, how.micro_batch, how.chunks, name_of(how.schedule), name_of(how.again),
                     how.sequence_parallel ? "yes" : "no", how.zero, x.cost.seconds, 100 * x.cost.mfu, x.cost.memory_bytes / giga);
}

std::string json_of(const planned& x) {
  auto& how = x.how;
  return fmt::format(R"({{"tensor":{},"data":{},"pipeline":{},"micro_batch":{},"chunks":{},"schedule":"{}","recompute":"{}",)"
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

std::string confirmation_line(const planned& best, const plan_confirmation& x) {
  if (!x.found)
    return fmt::format("\nThe best was not simulated: {}\n", x.problem);
  return fmt::format("\nThe best, simulated operation by operation ({} of them): {:.3f} s, {:+.1f} % beside the closed form; peak {:.1f} GB on rank {}\n",
                     x.found->operations, x.found->end, 100 * (x.found->end / best.cost.seconds - 1),
                     static_cast<double>(x.found->ranks[x.found->peak_rank].peak_memory) / giga, x.found->peak_rank);
}

std::string rejected_lines(const transformer_plans& found, double room) {
  std::string text;
  for (auto& x : found.too_large)
    text += fmt::format("{}  {:.1f} GB too much\n", line_of(x), (x.cost.memory_bytes - room) / giga);
  return text.empty() ? "" : fmt::format("\nFaster, but they do not fit:\n{}\n{}", plan_header, text);
}

std::string pareto_lines(const transformer_plans& found) {
  std::string text = fmt::format("\nThe Pareto front of time and memory ({} plans{}):\n{}\n", found.pareto.size(),
                                 found.pareto.size() > pareto_shown ? fmt::format(", {} of them shown", pareto_shown) : "", plan_header);
  for (size_t i = 0; i < std::min(pareto_shown, found.pareto.size()); ++i) {
    const auto last = found.pareto.size() - 1;
    text += line_of(found.pareto[found.pareto.size() <= pareto_shown ? i : i * last / (pareto_shown - 1)]) + "\n";
  }
  return text;
}

std::string choices_of(const searched& x) {
  auto& m = x.trained;
  return fmt::format("{:<15} {:>4} {:>4} {:>6} {:>4}", x.which->name, m.tensor == 0 ? 1 : m.tensor, m.data == 0 ? 1 : m.data,
                     m.micro_batch, m.chunks);
}

std::string line_of(const search_question& asked, const searched& x) {
  const auto mfu = asked.costs->mfu_percent(x.trained, asked.ranks, x.time);
  return fmt::format("{} {:>12.6g} {:>8} {:>8.2f} % {:>9.2f} % {:>16}\n", choices_of(x), x.time, mfu < 0 ? "" : fmt::format("{:.2f} %", mfu),
                     100 * x.bubble, 100 * x.communication, x.peak_memory);
}

std::string json_of(const search_question& asked, const searched& x) {
  const auto mfu = asked.costs->mfu_percent(x.trained, asked.ranks, x.time);
  auto& m = x.trained;
  return fmt::format(R"({{"strategy":"{}","tensor":{},"data":{},"micro_batch":{},"chunks":{},"time_s":{:.17g},"end_s":{:.17g},)"
                     R"("peak_memory":{},"mfu_percent":{},"bubble_fraction":{:.17g},"communication_fraction":{:.17g}}})",
                     x.which->name, m.tensor, m.data, m.micro_batch, m.chunks, x.time, x.end, x.peak_memory,
                     mfu < 0 ? "null" : fmt::format("{:.17g}", mfu), x.bubble, x.communication);
}

} // namespace

std::string report_of(const plan_question& asked, const transformer_plans& found, const plan_confirmation& confirmed) {
  const auto room = asked.system.memory_bytes - asked.system.reserved_bytes;
  auto text = fmt::format("{} ({:.1f} billion parameters) on {} x {}, a global batch of {} sequences of {}\n"
                          "{} plans, of which {} fit in {:.1f} GB\n",
                          asked.trained.name, parameters_of(asked.trained) / giga, asked.devices, asked.system.name,
                          asked.global_batch, asked.trained.sequence, found.evaluated, found.fitting, room / giga);
  if (found.best.empty())
    return text + (found.too_large.empty() ? "\nNo plan divides the model and the batch among so many devices.\n"
                                           : "\nNone fits.\n" + rejected_lines(found, room));
  text += fmt::format("\n{}  beside the best\n", plan_header);
  for (auto& x : found.best)
    text += fmt::format("{}  {}\n", line_of(x), &x == &found.best.front() ? "" : why_slower(x, found.best.front()));
  return text + confirmation_line(found.best.front(), confirmed) + rejected_lines(found, room) + pareto_lines(found);
}

std::string json_of(const plan_question& asked, const transformer_plans& found, const plan_confirmation& confirmed) {
  auto list = [](const std::vector<planned>& all) { return joined(all, [](auto& x) { return json_of(x); }); };
  return fmt::format(R"({{"model":"{}","system":"{}","gpus":{},"global_batch":{},"evaluated":{},"fitting":{},"best":{},"too_large":{},)"
                     R"("pareto":{},"simulated_time_s":{},"simulated_peak_memory":{}}})"
                     "\n",
                     asked.trained.name, asked.system.name, asked.devices, asked.global_batch, found.evaluated, found.fitting,
                     list(found.best), list(found.too_large), list(found.pareto),
                     confirmed.found ? fmt::format("{:.17g}", confirmed.found->end) : "null",
                     confirmed.found ? fmt::format("{}", confirmed.found->ranks[confirmed.found->peak_rank].peak_memory) : "null");
}

std::string report_of(const search_question& asked, const search_outcome& found) {
  auto text = fmt::format("{} layers, a global batch of {} on {} ranks, cost model {}: {} candidates, {} simulated, the others slower by their "
                          "compute alone\n\n",
                          asked.layers, asked.global_batch, asked.ranks, asked.costs->name(), found.candidates, found.simulated);
  const auto header = fmt::format("{:<15} {:>4} {:>4} {:>6} {:>4} {:>12} {:>8} {:>10} {:>11} {:>16}\n", "strategy", "t", "d", "micro", "v",
                                  fmt::format("time, {}", asked.costs->time_unit()), "MFU", "bubble", "comm.",
                                  fmt::format("peak, {}", asked.costs->memory_unit()));
  text += header;
  for (auto& x : found.best)
    text += line_of(asked, x);
  if (found.plain) {
    text += "\nPlain data parallel with accumulation, at its fastest:\n" + line_of(asked, *found.plain);
    const auto gain = found.best.empty() ? 0 : 1 - found.best.front().time / found.plain->time;
    text += gain > 0 ? fmt::format("The best takes {:.2f} % less time.\n", 100 * gain) : std::string{"Nothing beats it.\n"};
  }
  text += "\nThe Pareto front of time and memory, of the simulated ones:\n" + header;
  for (auto& x : found.pareto)
    text += line_of(asked, x);
  return text;
}

std::string json_of(const search_question& asked, const search_outcome& found) {
  auto list = [&](const std::vector<searched>& all) { return joined(all, [&](auto& x) { return json_of(asked, x); }); };
  return fmt::format(R"({{"cost_model":"{}","ranks":{},"layers":{},"global_batch":{},"candidates":{},"simulated":{},"best":{},"plain":{},"pareto":{}}})"
                     "\n",
                     asked.costs->name(), asked.ranks, asked.layers, asked.global_batch, found.candidates, found.simulated,
                     list(found.best), found.plain ? json_of(asked, *found.plain) : "null", list(found.pareto));
}

} // namespace ringmaster
