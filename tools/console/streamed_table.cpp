#include "tools/console/streamed_table.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

streamed_table::streamed_table(std::vector<column> columns, const page_format& page) : columns_(std::move(columns)) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    ensure(columns_[i].heads.size() == columns_.front().heads.size(), "all columns have heads of the same height");
    shown_.push_back(i);
  }
  auto order_of = [&](size_t i) { return columns_[i].left_out; };
  while (width() > page.table_columns()) {
    size_t next = columns_.size();
    for (auto i : shown_)
      if (order_of(i) > 0 && (next == columns_.size() || order_of(i) < order_of(next)))
        next = i;
    if (next == columns_.size())
      break;
    std::erase(shown_, next);
  }
}

size_t streamed_table::width() const {
  size_t result = 0;
  for (auto i : shown_)
    result += (i == shown_.front() ? 0 : 1) + columns_[i].width;
  return result;
}

std::string streamed_table::row(const std::vector<std::string>& cells) const {
  ensure(cells.size() == columns_.size(), "a row has a cell for each column");
  std::string text;
  for (auto i : shown_) {
    const auto& [heads, width, side, left_out] = columns_[i];
    text += i == shown_.front() ? "" : " ";
    text += side == text_side::left ? fmt::format("{:<{}}", cells[i], width) : fmt::format("{:>{}}", cells[i], width);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string streamed_table::head() const {
  std::string text;
  for (size_t line = 0; line < columns_.front().heads.size(); ++line) {
    std::vector<std::string> cells;
    for (auto& x : columns_)
      cells.push_back(x.heads[line]);
    text += row(cells);
  }
  return text;
}

std::string streamed_table::note() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < columns_.size(); ++i)
    if (std::ranges::find(shown_, i) == shown_.end())
      names.push_back(columns_[i].heads.front());
  return names.empty() ? "" : fmt::format("Not shown: {} (--wide shows all)", fmt::join(names, ", "));
}

} // namespace ringmaster
