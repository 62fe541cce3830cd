#include "runtime/text/pages/text_table.hpp"

#include "runtime/invariants/ensure.hpp"
#include "runtime/text/pages/wrapped_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace ringmaster {

namespace {

std::string without_blanks_at_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string padded(const std::string& cell, size_t width, text_side side) {
  const std::string blanks(width - std::min(width, columns_of(cell)), ' ');
  return side == text_side::left ? cell + blanks : blanks + cell;
}

} // namespace

void text_table::add_row(std::vector<std::string> cells) {
  ensure(cells.size() <= columns_.size(), "a row has at most a cell for each column");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<size_t> text_table::widths() const {
  std::vector<size_t> result(columns_.size(), 0);
  for (auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i)
      result[i] = std::max(result[i], columns_of(row[i]));
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] > 0)
      result[i] = std::max(result[i], columns_of(columns_[i].head));
  return result;
}

std::vector<size_t> text_table::shown_in(size_t width, const std::vector<size_t>& widths) const {
  std::vector<size_t> shown;
  for (size_t i = 0; i < widths.size(); ++i)
    if (widths[i] > 0)
      shown.push_back(i);
  auto needed = [&] {
    return std::accumulate(shown.begin(), shown.end(), shown.size(), [&](auto sum, auto i) { return sum + widths[i]; });
  };
  while (needed() > width + 1) { // one blank fewer than cells
    auto next = shown.end();
    for (auto at = shown.begin(); at != shown.end(); ++at)
      if (columns_[*at].left_out > 0 && (next == shown.end() || columns_[*at].left_out < columns_[*next].left_out))
        next = at;
    if (next == shown.end())
      break;
    shown.erase(next);
  }
  return shown;
}

std::string text_table::text(size_t width, const std::string& how_to_see_all) const {
  const auto wide = widths();
  const auto shown = shown_in(width, wide);
  ensure(std::ranges::is_sorted(shown), "columns are shown in their order");
  std::vector<std::string> left_out;
  for (size_t i = 0; i < wide.size(); ++i)
    if (wide[i] > 0 && std::ranges::count(shown, i) == 0)
      left_out.push_back(columns_[i].head);
  auto line = [&](auto cell_of) {
    std::string text;
    for (auto i : shown)
      text += (i == shown.front() ? "" : " ") + padded(cell_of(i), wide[i], columns_[i].side);
    return without_blanks_at_end(text) + "\n";
  };
  auto text = line([&](size_t i) { return columns_[i].head; });
  for (auto& row : rows_)
    text += line([&](size_t i) { return row[i]; });
  if (!left_out.empty())
    text += wrapped_text(fmt::format("Not shown: {} ({})", fmt::join(left_out, ", "), how_to_see_all), width) + "\n";
  return text;
}

} // namespace ringmaster
