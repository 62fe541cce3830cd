#include "tools/validation/csv_table.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/links/link_checksum.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <span>

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

/// Errors: corrupt, with what is wrong with the first line and what is right.
caf::error check_columns(const std::vector<std::string>& found, const csv_table::known_columns& known) {
  std::vector<std::string> names{known.required.begin(), known.required.end()};
  const auto required = fmt::format("\"{}\"", fmt::join(names, "\", \""));
  names.insert(names.end(), known.ignored.begin(), known.ignored.end());
  for (auto i = found.begin(); i != found.end(); ++i) {
    if (std::find(found.begin(), i, *i) != i)
      return make_error(errc::corrupt, fmt::format("two columns are named \"{}\"; each name must be unique", *i));
    if (std::ranges::find(names, *i) != names.end())
      continue;
    const auto near = nearest_word(*i, names);
    return make_error(errc::corrupt,
                      fmt::format("column {}, \"{}\", is unknown; {}the columns that are needed are {}",
                                  i - found.begin() + 1, *i,
                                  near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near), required));
  }
  for (auto& x : known.required)
    if (std::ranges::find(found, x) == found.end())
      return make_error(errc::corrupt,
                        fmt::format("there is no column \"{}\"; the columns that are needed are {}", x, required));
  return caf::none;
}

} // namespace

caf::expected<csv_table> csv_table::read(const std::string& file, const known_columns& columns) {
  std::ifstream in{file};
  std::string line;
  if (!in || !std::getline(in, line))
    return make_error(errc::io_error, fmt::format("cannot read {}", file));
  if (const auto wrong = wide_encoding_problem(line))
    return with_context(file, wrong);
  line.erase(0, byte_order_mark_bytes(line));
  csv_table result;
  result.file_ = file;
  result.columns_ = cells_of(line);
  if (const auto wrong = check_columns(result.columns_, columns))
    return with_context(fmt::format("{}, line 1", file), wrong);
  for (size_t number = 2; std::getline(in, line); ++number) {
    if (line.empty() || line == "\r")
      continue;
    result.rows_.push_back({number, cells_of(line)});
    const auto cells = result.rows_.back().cells.size();
    if (cells != result.columns_.size())
      return result.row(result.row_count() - 1)
        .refused(fmt::format("there are {} cells, but line 1 has {} columns", cells, result.columns_.size()));
  }
  return result;
}

uint64_t csv_table::fingerprint() const {
  std::string all;
  for (auto& row : rows_)
    for (auto& cell : row.cells)
      all += cell + (&cell == &row.cells.back() ? '\n' : ',');
  return link_checksum(std::as_bytes(std::span{all}));
}

csv_row csv_table::row(size_t index) const {
  ensure(index < rows_.size(), "a row is one of the table's");
  return {*this, rows_[index]};
}

const std::string& csv_row::text(std::string_view column) const {
  const auto at = std::ranges::find(table_->columns_, column);
  ensure(at != table_->columns_.end(), "a reader reads the columns that it required");
  return line_->cells[static_cast<size_t>(at - table_->columns_.begin())];
}

double csv_row::number(std::string_view column) {
  const auto x = decimal_in(text(column));
  return x && *x > 0 ? *x : refused_number(column, "a number above 0");
}

uint32_t csv_row::whole(std::string_view column) {
  const auto x = decimal_in(text(column));
  return static_cast<uint32_t>(x && *x > 0 && is_whole(*x) ? *x : refused_number(column, "a whole number above 0"));
}

uint32_t csv_row::count_or_none(std::string_view column) {
  const auto x = decimal_in(text(column));
  return static_cast<uint32_t>(x && is_whole(*x) ? *x : refused_number(column, "a whole number, 0 for none"));
}

caf::error csv_row::refused(const std::string& why) const {
  return make_error(errc::corrupt, fmt::format("{}, line {}: {}", table_->file_, line_->number, why));
}

double csv_row::refused_number(std::string_view column, std::string_view right) {
  if (!problem_)
    problem_ = refused(fmt::format("\"{}\" is no {} ({})", text(column), column, right));
  return 1;
}

} // namespace ringmaster
