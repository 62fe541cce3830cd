#include "runtime/drawing/svg_canvas.hpp"
#include "tools/diagnose/diagnose_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ringmaster {

namespace {

using namespace diagnosis;

constexpr size_t rows_max = 64, calls_max = 40; ///< Ranks, and calls of each.
constexpr double left = 150, top = 40, row_height = 18, width = 900;

std::vector<const rank_records*> shown_ranks(const job_records& job, const diagnosis_result& x) {
  std::set<uint32_t> wanted{x.root.ranks.begin(), x.root.ranks.end()};
  for (auto& row : x.evidence)
    wanted.insert(row.rank);
  std::vector<const rank_records*> result;
  for (auto& rank : job.ranks)
    if (wanted.contains(rank.rank) && result.size() < rows_max)
      result.push_back(&rank);
  for (auto& rank : job.ranks)
    if (!wanted.contains(rank.rank) && result.size() < rows_max)
      result.push_back(&rank);
  std::ranges::sort(result, {}, &rank_records::rank);
  return result;
}

struct time_range {
  int64_t from = INT64_MAX, to = 0;
  double x_of(int64_t ns) const {
    auto span = static_cast<double>(std::max<int64_t>(to - from, 1));
    return left + width * static_cast<double>(std::clamp(ns, from, to) - from) / span;
  }
};

/// The latest calls of the shown ranks, and a little more for those that are open.
time_range range_of(const std::vector<const rank_records*>& ranks) {
  time_range result;
  for (auto* rank : ranks)
    for (size_t i = rank->calls.size() - std::min(rank->calls.size(), calls_max); i < rank->calls.size(); ++i) {
      auto& call = rank->calls[i];
      if (call.created_ns == 0)
        continue;
      result.from = std::min(result.from, call.created_ns);
      result.to = std::max({result.to, call.created_ns, call.completed_ns});
    }
  if (result.from < result.to)
    result.to += (result.to - result.from) / 8;
  return result;
}

void draw_row(svg_canvas& canvas, const job_records& job, const rank_records& rank, const time_range& range, double y) {
  const auto groups = static_cast<uint32_t>(std::max<size_t>(job.groups.size(), 1));
  for (size_t i = rank.calls.size() - std::min(rank.calls.size(), calls_max); i < rank.calls.size(); ++i) {
    auto& call = rank.calls[i];
    if (call.created_ns == 0)
      continue;
    const bool open = call.state != call_state::completed;
    auto begin = range.x_of(call.created_ns), end = open ? left + width : range.x_of(call.completed_ns);
    canvas.rectangle(begin, y + 3, std::max(end - begin, 1.0), row_height - 6, distinct_colour(call.group, groups),
                     {.colour = open ? "#c00000" : "#ffffff", .width = open ? 1.5 : 0.5}, 2);
  }
}

} // namespace

std::string picture_of(const job_records& job, const diagnosis_result& x) {
  svg_canvas canvas;
  auto ranks = shown_ranks(job, x);
  auto range = range_of(ranks);
  canvas.text(10, 18, 13, sentence_of(job, x.root).substr(0, 170), svg_canvas::anchor::start, svg_canvas::ink, true);
  double y = top;
  for (auto* rank : ranks) {
    const bool is_cause = std::ranges::binary_search(x.root.ranks, rank->rank);
    auto label = fmt::format("rank {}{}{}", rank->rank, rank->host.empty() ? "" : " ", rank->host);
    canvas.text(left - 8, y + row_height / 2, 11, label, svg_canvas::anchor::end,
                is_cause ? "#c00000" : svg_canvas::ink, is_cause);
    draw_row(canvas, job, *rank, range, y);
    y += row_height;
  }
  if (range.from < range.to) {
    canvas.text(left, y + 14, 11, time_text(range.from), svg_canvas::anchor::start, svg_canvas::ink, false);
    canvas.text(left + width, y + 14, 11, time_text(range.to), svg_canvas::anchor::end, svg_canvas::ink, false);
  }
  return canvas.finish(left + width + 20, y + 30);
}

} // namespace ringmaster
