#include "tools/simulated_training/train_comparison.hpp"

#include "messages/errc.hpp"
#include "runtime/text/pages/quantity_column.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace ringmaster {

using namespace training;

void train_comparison::add(const train_run& x, const training_outcome& found) {
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
  problems_ += fmt::format("| {} | {} |\n", strategy, render(problem));
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

std::string train_comparison::text() const {
  if (!any())
    return problems_;
  const auto all = lines();
  std::vector<size_t> widths(all.front().size());
  for (auto& each : all)
    for (size_t i = 0; i < each.size(); ++i)
      widths[i] = std::max(widths[i], each[i].size());
  std::string result;
  for (auto& each : all) {
    for (size_t i = 0; i < each.size(); ++i)
      result += i == 0 ? fmt::format("| {:<{}} |", each[i], widths[i]) : fmt::format(" {:>{}} |", each[i], widths[i]);
    result += "\n";
    if (&each == &all.front())
      for (size_t i = 0; i < each.size(); ++i)
        result += i == 0                ? fmt::format("|{:-<{}}|", "", widths[i] + 2)
                  : i + 1 < each.size() ? fmt::format("{:-<{}}:|", "", widths[i] + 1)
                                        : fmt::format("{:-<{}}:|\n", "", widths[i] + 1);
  }
  result += problems_;
  if (!mfu_counts_.empty())
    result += fmt::format("\nMFU counts {} attention\n", mfu_counts_);
  for (auto& [option, those] : left_out_)
    result += fmt::format("\nNot for {}: {}\n", option, fmt::join(those, ", "));
  return result;
}

} // namespace ringmaster
