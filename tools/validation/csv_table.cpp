#include "tools/validation/csv_table.hpp"

#include "messages/errc.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>

namespace ringmaster {

namespace {

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> result;
  for (auto cell : comma_list(line)) {
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '#'))
      cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\r'))
      cell.remove_suffix(1);
    result.emplace_back(cell);
  }
  return result;
}

bool is_whole(double x) {
  return x >= 0 && x < 1e9 && x == static_cast<double>(static_cast<uint32_t>(x));
}

} // namespace

caf::expected<csv_table> csv_table::read(const std::string& file, std::span<const std::string_view> columns) {
  std::ifstream in{file};
  std::string line;
  if (!in || !std::getline(in, line))
    return make_error(errc::io_error, fmt::format("cannot read {}", file));
  if (const auto wrong = wide_encoding_problem(line))
    return with_context(file, wrong);
  line.erase(0, byte_order_mark_bytes(line));
  csv_table result;
  result.file_ = file;
  result.columns_.assign(columns.begin(), columns.end());
  auto names = cells_of(line);
  std::vector<size_t> places;
  for (auto& x : result.columns_) {
    auto at = std::ranges::find(names, x);
    if (at == names.end())
      return make_error(errc::corrupt, fmt::format("{}: line 1 has no column \"{}\"", file, x));
    places.push_back(static_cast<size_t>(at - names.begin()));
  }
  for (size_t number = 2; std::getline(in, line); ++number) {
    if (line.empty() || line == "\r")
      continue;
    auto cells = cells_of(line);
    row x{number, {}};
    for (auto place : places)
      x.cells.push_back(place < cells.size() ? cells[place] : "");
    result.rows_.push_back(std::move(x));
  }
  return result;
}

caf::error csv_table::refused(const row& where, const std::string& why) const {
  return make_error(errc::corrupt, fmt::format("{}, line {}: {}", file_, where.line, why));
}

caf::expected<double> csv_table::number(const row& from, size_t column, bool whole) const {
  auto x = decimal_in(from.cells[column]);
  if (!x || !(*x > 0) || (whole && !is_whole(*x)))
    return refused(from, fmt::format("\"{}\" is no {} (a {} above 0)", from.cells[column], columns_[column],
                                     whole ? "whole number" : "number"));
  return *x;
}

caf::expected<double> csv_table::count_or_none(const row& from, size_t column) const {
  auto x = decimal_in(from.cells[column]);
  if (!x || !is_whole(*x))
    return refused(from,
                   fmt::format("\"{}\" is no {} (a whole number, 0 for none)", from.cells[column], columns_[column]));
  return *x;
}

} // namespace ringmaster
