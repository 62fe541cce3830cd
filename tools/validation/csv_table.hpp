#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

class csv_row;

/// A CSV file without quotation marks. Its first line has the names of the columns, in any order; a name may have a '#'
/// before it. Empty lines are none.
class csv_table {
public:
  /// The columns that a reader knows.
  struct known_columns {
    std::span<const std::string_view> required; ///< A file has all of them.
    std::span<const std::string_view> ignored;  ///< A file may have them; they are not read.
  };

  /// Errors: io_error; corrupt for a column that is missing, unknown or repeated, and for a row with another number of
  /// cells. They name the file, the line and what is right.
  static caf::expected<csv_table> read(const std::string& file, const known_columns& columns);

  size_t row_count() const { return rows_.size(); }
  csv_row row(size_t index) const;
  /// Of all cells, in the order of the file.
  uint64_t fingerprint() const;

private:
  friend csv_row;

  struct line_cells {
    size_t number = 0; ///< Of the line, from 1.
    std::vector<std::string> cells;
  };

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<line_cells> rows_;
};

/// A row, whose cells are read by the names of their columns, which must be in the table. A number that its reader does
/// not allow reads as 1 and is the row's `problem`, if it is the first one. The table must outlive the row.
class csv_row {
public:
  const std::string& text(std::string_view column) const;
  double number(std::string_view column);          ///< Above 0.
  uint32_t whole(std::string_view column);         ///< Above 0.
  uint32_t count_or_none(std::string_view column); ///< 0 means none.

  /// "FILE, line N: why" with code corrupt.
  caf::error refused(const std::string& why) const;
  /// The first number that is not allowed; none: all are.
  const caf::error& problem() const { return problem_; }

private:
  friend csv_table;

  csv_row(const csv_table& of, const csv_table::line_cells& at) : table_(&of), line_(&at) {}
  double refused_number(std::string_view column, std::string_view right);

  const csv_table* table_;
  const csv_table::line_cells* line_;
  caf::error problem_;
};

} // namespace ringmaster
