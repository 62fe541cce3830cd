#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

/// The width of a report.
struct page_format {
  static constexpr size_t columns_max = 100, columns_min = 60;

  size_t columns = columns_max; ///< Of a line of text.
  bool wide = false;            ///< Tables show all columns, whatever the width.

  /// As wide as $COLUMNS says, or else the terminal, within `columns_min` and `columns_max`. Elsewhere `columns_max`.
  static page_format of_console(bool wide);

  size_t table_columns() const noexcept { return wide ? SIZE_MAX - 1 : columns; }
  /// The text in lines of the page, all but the first indented. Ends with a new line.
  std::string line(std::string_view text, size_t indent = 0) const;
  /// The same after "- ".
  std::string bullet(std::string_view text) const;
};

} // namespace ringmaster
