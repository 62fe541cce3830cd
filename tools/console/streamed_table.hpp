#pragma once

#include "runtime/text/pages/text_table.hpp"
#include "tools/console/page_format.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// A table that is printed row by row while its rows are measured, so its columns have fixed widths. Where its lines do
/// not fit the page it leaves columns out, in the order that the columns state.
class streamed_table {
public:
  struct column {
    std::vector<std::string> heads; ///< One for each line of the head.
    size_t width = 0;
    text_side side = text_side::right; ///< On which the cells are aligned.
    unsigned left_out = 0;             ///< 1: the first that is left out, 2: the next, ...; 0: never.
  };

  streamed_table(std::vector<column> columns, const page_format& page);

  std::string head() const;
  /// A cell for each column, with those that are left out.
  std::string row(const std::vector<std::string>& cells) const;
  /// "Not shown: p50, p99 (--wide shows all)"; empty if all columns are shown.
  std::string note() const;

private:
  size_t width() const;

  std::vector<column> columns_;
  std::vector<size_t> shown_; ///< Indexes of columns, ascending.
};

} // namespace ringmaster
