#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

enum class text_side : unsigned char { left, right };

/// A table of text whose columns are as wide as their cells. If lines are too long, it leaves columns out in a stated
/// order, and names them below.
class text_table {
public:
  struct column {
    std::string head;
    text_side side = text_side::right; ///< Alignment of the cells.
    unsigned left_out = 0;             ///< 1: left out first, 2: next, ...; 0: never.
  };

  explicit text_table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// A cell for each column; missing cells are empty.
  void add_row(std::vector<std::string> cells);

  /// The head and the rows in lines of at most `width` characters, a blank between two cells; then a line with the
  /// names of the columns that were left out, and `how_to_see_all`. A column with no cells is not shown.
  std::string text(size_t width, const std::string& how_to_see_all) const;

private:
  std::vector<size_t> widths() const;
  /// Indices of columns, ascending.
  std::vector<size_t> shown_in(size_t width, const std::vector<size_t>& widths) const;

  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A column with cells on its left or right side.
inline text_table::column left_column(std::string head, unsigned left_out = 0) {
  return {std::move(head), text_side::left, left_out};
}
inline text_table::column right_column(std::string head, unsigned left_out = 0) {
  return {std::move(head), text_side::right, left_out};
}

} // namespace ringmaster
