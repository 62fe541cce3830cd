#include "tools/simulated_training/train_comparison.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/pages/quantity_column.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ringmaster {

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
