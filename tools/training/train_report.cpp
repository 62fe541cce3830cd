#include "tools/training/train_report.hpp"

#include "runtime/text/quantity_text.hpp"
#include "runtime/training/strategies/strategies.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint32_t ranks_shown = 16; ///< At each end.

double mfu_of(const train_run& x, const training_outcome& found) {
  return x.costs->mfu_percent(x.trained, x.ranks, found.time);
}

double idle_of(const rank_outcome& x, const training_outcome& found) {
  const auto idle = found.end - x.compute - x.communication;
  return idle > 1e-12 * found.end ? idle : 0; // sums of many durations are off by less
}

} // namespace

std::string report_of(const train_run& x, const training_outcome& found) {
  auto& costs = *x.costs;
  auto& peak = found.ranks[found.peak_rank];
  auto* which = strategy_of(x.strategy);
  auto text = fmt::format("{} on {}: {}, a global batch of {}{}, cost model {}\n", x.strategy, counted(x.ranks, "rank"),
                          counted(x.trained.layers, "layer"), x.trained.global_batch,
                          x.uncut ? "" : fmt::format(" in micro-batches of {}", x.trained.micro_batch), costs.name());
  if (which != nullptr)
    if (const auto shape = which->shape(x.trained, x.ranks); shape.tensor > 1 || shape.pipeline > 1)
      text += fmt::format("{} tensor x {} data x {} pipeline parallel ranks{}{}\n", shape.tensor, shape.data,
                          shape.pipeline, x.trained.sequence_parallel ? ", sequence parallel" : "",
                          x.trained.zero > 0 ? fmt::format(", ZeRO stage {}", x.trained.zero) : "");
  if (which != nullptr)
    if (const auto shape = which->shape(x.trained, x.ranks); shape.context > 1)
      text += fmt::format("{} context x {} data parallel ranks\n", shape.context, shape.data);
  if (auto about = costs.about(); !about.empty())
    text += about + "\n";
  text += fmt::format("time           {:.6g} {} to the start of the last event, {:.6g} to the end\n", found.time,
                      costs.time_unit(), found.end);
  text += fmt::format("peak memory    {} {}, on rank {} at {:.6g} {}\n", peak.peak_memory, costs.memory_unit(),
                      found.peak_rank, peak.peak_at, costs.time_unit());
  if (peak.peak_memory > costs.room())
    text += fmt::format("               which does not fit: there is room for {}\n", costs.room());
  if (auto mfu = mfu_of(x, found); mfu >= 0)
    text += fmt::format("MFU            {:.2f} %\n", mfu);
  text += fmt::format(
    "bubble         {:.2f} % of the ranks' time they wait\ncommunication  {:.2f} % of it\noperations     {}\n",
    100 * found.bubble_fraction, 100 * found.communication_fraction, found.operations);
  text += fmt::format("\n{:>6} {:>12} {:>12} {:>12} {:>12} {:>16}\n", "rank", "compute", "communicate", "wait", "end",
                      "peak memory");
  for (uint32_t rank = 0; rank < x.ranks; ++rank) {
    if (rank == ranks_shown && x.ranks > 2 * ranks_shown) {
      text += fmt::format("{:>6}\n", "...");
      rank = x.ranks - ranks_shown;
    }
    auto& its = found.ranks[rank];
    text += fmt::format("{:>6} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g} {:>16}\n", rank, its.compute, its.communication,
                        idle_of(its, found), its.end, its.peak_memory);
  }
  return text;
}

std::string comparison_header() {
  return "| strategy | time | end | peak memory | MFU | bubble | communication "
         "|\n|---|---:|---:|---:|---:|---:|---:|\n";
}

std::string comparison_row(const train_run& x, const training_outcome& found) {
  const auto mfu = mfu_of(x, found);
  return fmt::format("| {} | {:.5g} {} | {:.5g} {} | {:.4g} {} | {} | {:.1f} % | {:.1f} % |\n", x.strategy, found.time,
                     x.costs->time_unit(), found.end, x.costs->time_unit(),
                     static_cast<double>(found.ranks[found.peak_rank].peak_memory), x.costs->memory_unit(),
                     mfu < 0 ? "" : fmt::format("{:.1f} %", mfu), 100 * found.bubble_fraction,
                     100 * found.communication_fraction);
}

void write_json(json_writer& json, const train_run& x, const training_outcome& found) {
  auto mfu = mfu_of(x, found);
  auto* which = strategy_of(x.strategy);
  const auto shape = which != nullptr ? which->shape(x.trained, x.ranks) : mesh{1, x.ranks, 1};
  json.object()
    .member("strategy", x.strategy)
    .member("cost_model", x.costs->name())
    .member("world_size", x.ranks)
    .member("layers", x.trained.layers)
    .member("global_batch", x.trained.global_batch)
    .member("micro_batch", x.uncut ? 1 : x.trained.micro_batch)
    .member("tensor", shape.tensor)
    .member("context", shape.context)
    .member("data", shape.data)
    .member("stages", shape.pipeline)
    .member("chunks", x.trained.chunks)
    .member("sequence_parallel", x.trained.sequence_parallel)
    .member("zero", x.trained.zero)
    .member("about", x.costs->about())
    .member("time_unit", x.costs->time_unit())
    .member("time_s", found.time)
    .member("end_s", found.end)
    .member("peak_memory", found.ranks[found.peak_rank].peak_memory)
    .member("peak_memory_unit", x.costs->memory_unit())
    .member("peak_rank", found.peak_rank)
    .key("mfu_percent");
  mfu >= 0 ? json.value(mfu) : json.null();
  json.member("bubble_fraction", found.bubble_fraction)
    .member("communication_fraction", found.communication_fraction)
    .member("operations", found.operations)
    .list("ranks");
  for (uint32_t rank = 0; rank < x.ranks; ++rank) {
    auto& its = found.ranks[rank];
    json.object()
      .member("rank", rank)
      .member("time_s", its.last_start)
      .member("end_s", its.end)
      .member("compute_s", its.compute)
      .member("communication_s", its.communication)
      .member("wait_s", idle_of(its, found))
      .member("peak_memory", its.peak_memory)
      .member("peak_at_s", its.peak_at)
      .end();
  }
  json.end().end();
}

} // namespace ringmaster
