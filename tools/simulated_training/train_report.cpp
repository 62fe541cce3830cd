#include "tools/simulated_training/train_report.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/pages/quantity_column.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/strategies/strategies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ringmaster {

using namespace training;

namespace {

constexpr uint32_t ranks_shown = 16; ///< At each end.

double mfu_of(const train_run& x, const training_outcome& found) {
  return x.costs->mfu_percent(x.trained, x.ranks, found.time);
}

/// What of attention is counted in MFU, where there is attention.
std::string counted_text(const cost_model& costs) {
  const auto counts = costs.mfu_counts();
  return counts.empty() ? "" : fmt::format(", counting {} attention", counts);
}

double idle_of(const rank_outcome& x, const training_outcome& found) {
  const auto idle = found.end - x.compute - x.communication;
  return idle > 1e-12 * found.end ? idle : 0; // sums of many durations are off by less
}

/// A line a rank; of many ranks the first and the last ones.
std::string ranks_text(const train_run& x, const training_outcome& found) {
  std::vector<double> times, memories;
  for (auto& its : found.ranks) {
    times.insert(times.end(), {its.compute, its.communication, its.end});
    memories.push_back(static_cast<double>(its.peak_memory));
  }
  const quantity_column time{times, x.costs->time_unit()}, memory{memories, x.costs->memory_unit()};
  auto text = fmt::format("{:>6} {:>15} {:>19} {:>13} {:>12} {:>22}\n", "rank", "compute, " + time.unit(),
                          "communicate, " + time.unit(), "wait, " + time.unit(), "end, " + time.unit(),
                          "peak, " + memory.unit());
  for (uint32_t rank = 0; rank < x.ranks; ++rank) {
    if (rank == ranks_shown && x.ranks > 2 * ranks_shown) {
      text += fmt::format("{:>6}\n", "...");
      rank = x.ranks - ranks_shown;
    }
    auto& its = found.ranks[rank];
    text += fmt::format("{:>6} {:>15} {:>19} {:>13} {:>12} {:>22}\n", rank, time.text(its.compute),
                        time.text(its.communication), time.text(idle_of(its, found)), time.text(its.end),
                        memory.text(static_cast<double>(its.peak_memory)));
  }
  return text;
}

/// A line of how ranks share the work, where they do not only have other samples; else nothing.
std::string axes_text(const mesh& shape, const model& trained) {
  if (shape.tensor == 1 && shape.pipeline == 1 && shape.context == 1 && trained.parallel.ep <= 1
      && trained.parallel.zero == 0)
    return "";
  return fmt::format("{} tensor{} x {} data x {} pipeline parallel ranks{}{}{}\n", shape.tensor,
                     shape.context > 1 ? fmt::format(" x {} context", shape.context) : "", shape.data, shape.pipeline,
                     trained.parallel.ep > 1 ? fmt::format(", {} of a stage share experts", trained.parallel.ep) : "",
                     trained.parallel.sequence_parallel ? ", sequence parallel" : "",
                     trained.parallel.zero > 0 ? fmt::format(", ZeRO stage {}", trained.parallel.zero) : "");
}

std::string layers_text(const train_run& x) {
  if (x.trained.layers == x.layers)
    return counted(x.layers, "layer");
  const bool apart = x.costs->knows(beyond::experts);
  const auto parts = apart ? 2 : 1;
  return fmt::format("{} in {} places{}{}", counted(x.layers, "layer"), x.trained.layers,
                     apart ? ", attention and networks apart" : "",
                     x.trained.layers > parts * x.layers ? ", with the embedding and the logits" : "");
}

} // namespace

std::string report_of(const train_run& x, const training_outcome& found) {
  auto& costs = *x.costs;
  auto& peak = found.ranks[found.peak_rank];
  auto* which = strategy_of(x.strategy);
  auto text = fmt::format("{} on {}: {}, a global batch of {}{}, cost model {}\n", x.strategy, counted(x.ranks, "rank"),
                          layers_text(x), x.trained.global_batch,
                          x.uncut ? "" : fmt::format(" in micro-batches of {}", x.trained.micro_batch), costs.name());
  if (which != nullptr)
    text += axes_text(which->shape(x.trained, x.ranks), x.trained);
  if (auto about = costs.about(); !about.empty())
    text += about + "\n";
  auto time_text = [&](double time) { return quantity_text(time, costs.time_unit()); };
  auto memory_text = [&](uint64_t held) { return quantity_text(static_cast<double>(held), costs.memory_unit()); };
  text += fmt::format("time           {} to the start of the last event, {} to the end\n", time_text(found.time),
                      time_text(found.end));
  text += fmt::format("peak memory    {}, on rank {} at {}\n", memory_text(peak.peak_memory), found.peak_rank,
                      time_text(peak.peak_at));
  if (peak.peak_memory > costs.room())
    text += fmt::format("               which does not fit: there is room for {}\n", memory_text(costs.room()));
  if (auto mfu = mfu_of(x, found); mfu >= 0)
    text += fmt::format("MFU            {:.2f} %{}\n", mfu, counted_text(costs));
  text += fmt::format(
    "bubble         {:.2f} % of the ranks' time they wait\ncommunication  {:.2f} % of it\noperations     {}\n",
    100 * found.bubble_fraction, 100 * found.communication_fraction, found.operations);
  return text + "\n" + ranks_text(x, found);
}

json_value json_of(const train_run& x, const training_outcome& found) {
  auto mfu = mfu_of(x, found);
  auto* which = strategy_of(x.strategy);
  const auto shape = which != nullptr ? which->shape(x.trained, x.ranks) : mesh{1, x.ranks, 1};
  const auto room = x.costs->room();
  const bool limited = room != UINT64_MAX;
  const auto counts = x.costs->mfu_counts();
  const auto peak = found.ranks[found.peak_rank].peak_memory;
  auto ranks = json_value::array();
  for (uint32_t rank = 0; rank < x.ranks; ++rank) {
    auto& its = found.ranks[rank];
    ranks.push_back({{"rank", rank},
                     {"time_s", its.last_start},
                     {"end_s", its.end},
                     {"compute_s", its.compute},
                     {"communication_s", its.communication},
                     {"wait_s", idle_of(its, found)},
                     {"peak_memory", its.peak_memory},
                     {"peak_at_s", its.peak_at}});
  }
  return {{"strategy", x.strategy},
          {"cost_model", x.costs->name()},
          {"world_size", x.ranks},
          {"layers", x.layers},
          {"places", x.trained.layers},
          {"global_batch", x.trained.global_batch},
          {"micro_batch", x.uncut ? 1 : x.trained.micro_batch},
          {"tensor", shape.tensor},
          {"context", shape.context},
          {"data", shape.data},
          {"stages", shape.pipeline},
          {"chunks", which != nullptr && which->chunks != chunk_use::buckets ? chunks_of(*which, x.trained)
                                                                             : x.trained.parallel.chunks},
          {"sequence_parallel", x.trained.parallel.sequence_parallel},
          {"zero", x.trained.parallel.zero},
          {"about", x.costs->about()},
          {"time_unit", x.costs->time_unit()},
          {"time_s", found.time},
          {"end_s", found.end},
          {"peak_memory", peak},
          {"peak_memory_unit", x.costs->memory_unit()},
          {"room", limited ? json_value(room) : json_value{}},
          {"fits", limited ? json_value(peak <= room) : json_value{}},
          {"peak_rank", found.peak_rank},
          {"mfu_percent", mfu >= 0 ? json_value(mfu) : json_value{}},
          {"mfu_counts", counts.empty() ? json_value{} : json_value(counts)},
          {"bubble_fraction", found.bubble_fraction},
          {"communication_fraction", found.communication_fraction},
          {"operations", found.operations},
          {"ranks", std::move(ranks)}};
}

using namespace training;

void train_comparison::add(const train_run& x, const training_outcome& found) {
  ensure(found.peak_rank < found.ranks.size(), "the rank that holds the most is one of the ranks");
  const auto peak = found.ranks[found.peak_rank].peak_memory;
  runs_.push_back({x.strategy, found.time, found.end, static_cast<double>(peak),
                   x.costs->mfu_percent(x.trained, x.ranks, found.time), found.bubble_fraction,
                   found.communication_fraction, peak <= x.costs->room()});
  mfu_counts_ = x.costs->mfu_counts();
  time_unit_ = x.costs->time_unit();
  memory_unit_ = x.costs->memory_unit();
  room_ = x.costs->room();
}

void train_comparison::left_out(std::string_view strategy, const std::string& option) {
  left_out_[option].push_back(strategy);
}

void train_comparison::add(std::string_view strategy, const caf::error& problem) {
  ensure(static_cast<bool>(problem), "a strategy that cannot run has a reason");
  problems_.push_back(fmt::format("{}: {}", strategy, render(problem)));
}

std::vector<train_comparison::line> train_comparison::lines() const {
  auto sorted = runs_;
  std::ranges::stable_sort(sorted, {}, [](auto& x) { return std::tuple{!x.fits, x.time}; });
  std::vector<double> times, memories;
  for (auto& x : sorted) {
    times.insert(times.end(), {x.time, x.end});
    memories.push_back(x.memory);
  }
  const quantity_column time{times, time_unit_}, memory{memories, memory_unit_};
  const bool limited = room_ != UINT64_MAX;
  std::vector<line> result{{"strategy", "time, " + time.unit(), "end, " + time.unit(), "peak memory, " + memory.unit(),
                            "MFU, %", "bubble, %", "communication, %"}};
  if (limited)
    result.front().push_back("fits into " + quantity_text(static_cast<double>(room_), memory_unit_));
  for (auto& x : sorted) {
    result.push_back({std::string{x.strategy}, time.text(x.time), time.text(x.end), memory.text(x.memory),
                      x.mfu_percent < 0 ? "" : fmt::format("{:.1f}", x.mfu_percent),
                      fmt::format("{:.1f}", 100 * x.bubble), fmt::format("{:.1f}", 100 * x.communication)});
    if (limited)
      result.back().push_back(x.fits ? "yes" : "no");
  }
  return result;
}

namespace {

constexpr size_t end_column = 2, bubble_column = 5, communication_column = 6;

/// The columns that fit into lines of that width.
std::vector<size_t> shown_in(size_t width, const std::vector<size_t>& widths) {
  std::vector<size_t> shown(widths.size());
  std::iota(shown.begin(), shown.end(), 0u);
  auto needed = [&] {
    constexpr size_t borders = 3; // of each cell: "| " and " "
    return std::accumulate(shown.begin(), shown.end(), size_t{1},
                           [&](auto sum, auto i) { return sum + widths[i] + borders; });
  };
  for (auto column : {end_column, bubble_column, communication_column})
    if (needed() > width)
      std::erase(shown, column);
  return shown;
}

} // namespace

std::string train_comparison::table_text(const page_format& page) const {
  const auto all = lines();
  std::vector<size_t> widths(all.front().size());
  for (auto& each : all) {
    ensure(each.size() == widths.size(), "a line has a cell for each column");
    for (size_t i = 0; i < each.size(); ++i)
      widths[i] = std::max(widths[i], each[i].size());
  }
  const auto shown = shown_in(page.table_columns(), widths);
  std::string text;
  auto add_line = [&](auto cell_of) {
    text += "|";
    for (auto i : shown)
      text += cell_of(i) + "|";
    text += "\n";
  };
  for (auto& each : all) {
    add_line([&](size_t i) {
      return i == 0 ? fmt::format(" {:<{}} ", each[i], widths[i]) : fmt::format(" {:>{}} ", each[i], widths[i]);
    });
    if (&each == &all.front())
      add_line([&](size_t i) { return std::string(widths[i] + (i == 0 ? 2 : 1), '-') + (i == 0 ? "" : ":"); });
  }
  if (shown.size() == widths.size())
    return text;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < widths.size(); ++i)
    if (std::ranges::count(shown, i) == 0)
      left_out.push_back(all.front()[i]);
  return text + page.line(fmt::format("Not shown: {} (--wide shows all)", fmt::join(left_out, "; ")));
}

std::string train_comparison::text(const page_format& page) const {
  std::string result;
  if (any())
    result = table_text(page);
  for (auto& each : problems_)
    result += page.bullet(each);
  if (any() && !mfu_counts_.empty())
    result += "\n" + page.line(fmt::format("MFU counts {} attention", mfu_counts_));
  for (auto& [option, those] : left_out_)
    result += "\n" + page.line(fmt::format("Not for {}: {}", option, fmt::join(those, ", ")));
  return result;
}

} // namespace ringmaster
