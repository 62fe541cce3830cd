#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

enum class text_side : unsigned char { left, right };

/// A table of text whose columns are as wide as what is in them. Where its lines are too long it leaves columns out, in
/// the order that the columns state, and says which.
class text_table {
public:
  struct column {
    std::string head;
    text_side side = text_side::right; ///< On which the cells are aligned.
    unsigned left_out = 0;             ///< 1: the first that is left out, 2: the next, ...; 0: never.
  };

  explicit text_table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// A cell for each column; those that are missing are empty.
  void add_row(std::vector<std::string> cells);

  /// The head and the rows in lines of at most `width` columns, a blank between two cells; then a line with the names
  /// of the columns that are left out for that, and `how_to_see_all`. A column without any cell does not count.
  std::string text(size_t width, const std::string& how_to_see_all) const;

private:
  std::vector<size_t> widths() const;
  /// By index; ascending.
  std::vector<size_t> shown_in(size_t width, const std::vector<size_t>& widths) const;

  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace ringmaster
