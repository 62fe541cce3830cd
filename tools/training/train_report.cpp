#include "tools/training/train_report.hpp"

#include "runtime/text/json_value.hpp"
#include "runtime/training/strategies/strategies.hpp"

#include <fmt/format.h>

#include <deque>
#include <map>

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

/// A rank has a track for each stream.
uint32_t track_of(uint32_t rank, bool aside) {
  return 2 * rank + (aside ? 1 : 0);
}

/// Microseconds of a trace; a unit that is no second is a millisecond there.
double trace_us(double time, const cost_model& costs) {
  return time * (costs.time_unit() == "s" ? 1e6 : 1e3);
}

} // namespace

std::string report_of(const train_run& x, const training_outcome& found) {
  auto& costs = *x.costs;
  auto& peak = found.ranks[found.peak_rank];
  auto* which = strategy_of(x.strategy);
  auto text = fmt::format("{} on {} ranks: {} layers, a global batch of {}{}, cost model {}\n", x.strategy, x.ranks,
                          x.trained.layers, x.trained.global_batch,
                          x.uncut ? "" : fmt::format(" in micro-batches of {}", x.trained.micro_batch), costs.name());
  if (which != nullptr)
    if (const auto shape = which->shape(x.trained, x.ranks); shape.tensor > 1 || shape.pipeline > 1)
      text += fmt::format("{} tensor x {} data x {} pipeline parallel ranks{}{}\n", shape.tensor, shape.data,
                          shape.pipeline, x.trained.sequence_parallel ? ", sequence parallel" : "",
                          x.trained.zero > 0 ? fmt::format(", ZeRO stage {}", x.trained.zero) : "");
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

std::string json_of(const train_run& x, const training_outcome& found) {
  auto mfu = mfu_of(x, found);
  auto* which = strategy_of(x.strategy);
  const auto shape = which != nullptr ? which->shape(x.trained, x.ranks) : mesh{1, x.ranks, 1};
  auto text = fmt::format(
    R"({{"strategy":"{}","cost_model":"{}","world_size":{},"layers":{},"global_batch":{},"micro_batch":{},)"
    R"("tensor":{},"data":{},"stages":{},"chunks":{},"sequence_parallel":{},"zero":{},"about":{},"time_unit":"{}",)"
    R"("time_s":{:.17g},"end_s":{:.17g},"peak_memory":{},"peak_memory_unit":"{}","peak_rank":{},"mfu_percent":{},)"
    R"("bubble_fraction":{:.17g},"communication_fraction":{:.17g},"operations":{},"ranks":[)",
    x.strategy, x.costs->name(), x.ranks, x.trained.layers, x.trained.global_batch, x.uncut ? 1 : x.trained.micro_batch,
    shape.tensor, shape.data, shape.pipeline, x.trained.chunks, x.trained.sequence_parallel, x.trained.zero,
    json_text(x.costs->about()), x.costs->time_unit(), found.time, found.end, found.ranks[found.peak_rank].peak_memory,
    x.costs->memory_unit(), found.peak_rank, mfu >= 0 ? fmt::format("{:.17g}", mfu) : "null", found.bubble_fraction,
    found.communication_fraction, found.operations);
  for (uint32_t rank = 0; rank < x.ranks; ++rank) {
    auto& its = found.ranks[rank];
    text += fmt::format(
      R"({}{{"rank":{},"time_s":{:.17g},"end_s":{:.17g},"compute_s":{:.17g},"communication_s":{:.17g},)"
      R"("wait_s":{:.17g},"peak_memory":{},"peak_at_s":{:.17g}}})",
      rank == 0 ? "" : ",", rank, its.last_start, its.end, its.compute, its.communication, idle_of(its, found),
      its.peak_memory, its.peak_at);
  }
  return text + "]}\n";
}

std::string trace_of(const training_outcome& found, const cost_model& costs) {
  std::string text = R"({"traceEvents":[{"name":"process_name","ph":"M","pid":1,"args":{"name":"ranks"}})";
  std::map<std::pair<uint32_t, uint32_t>, std::deque<uint64_t>> arrows; // by sender and receiver
  uint64_t last_arrow = 0;
  for (uint32_t rank = 0; rank < found.ranks.size(); ++rank)
    for (bool aside : {false, true})
      if (!aside || found.ranks[rank].aside > 0)
        text += fmt::format(
          ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":\"rank {}{}\"}}}}",
          track_of(rank, aside), rank, aside ? ", second stream" : "");
  for (auto& x : found.events) {
    const auto start = trace_us(x.start, costs), duration = trace_us(x.duration, costs);
    text += fmt::format(
      ",\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.6f},\"dur\":{:.6f},\"args\":{{\"layer\":{}",
      name_of(x.what), track_of(x.rank, x.aside), start, duration, x.layer);
    if (x.samples.count() > 0)
      text += fmt::format(",\"first_sample\":{},\"samples\":{}", x.samples.begin, x.samples.count());
    text += x.aside ? "}}" : fmt::format(",\"memory\":{}}}}}", x.memory);
    if (!x.aside)
      text += fmt::format(
        ",\n{{\"name\":\"memory of rank {}\",\"ph\":\"C\",\"pid\":1,\"ts\":{:.6f},\"args\":{{\"{}\":{}}}}}", x.rank,
        start, costs.memory_unit(), x.memory);
    if (x.what != op::send && x.what != op::receive)
      continue;
    const bool sends = x.what == op::send;
    auto& open = arrows[sends ? std::pair{x.rank, x.peer} : std::pair{x.peer, x.rank}];
    if (sends)
      open.push_back(++last_arrow);
    text += fmt::format(
      ",\n{{\"name\":\"sent\",\"cat\":\"sent\",\"ph\":\"{}\",\"id\":{},\"pid\":1,\"tid\":{},\"ts\":{:.6f}{}}}",
      sends ? "s" : "f", sends ? open.back() : open.front(), track_of(x.rank, x.aside), start + duration / 2,
      sends ? "" : R"(,"bp":"e")");
    if (!sends)
      open.pop_front();
  }
  return text + "\n]}\n";
}

} // namespace ringmaster
