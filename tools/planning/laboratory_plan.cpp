#include "tools/planning/laboratory_plan.hpp"

#include "runtime/text/json_writer.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

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
