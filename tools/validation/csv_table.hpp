#pragma once

#include <caf/expected.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// A CSV file with a header, without quotation marks, as far as certain columns are concerned.
class csv_table {
public:
  struct row {
    size_t line = 0;                ///< From 1.
    std::vector<std::string> cells; ///< In the order of the columns that were asked for.
  };

  /// Names may have a '#' before them; further columns may be there, empty lines are none. Errors: io_error, corrupt
  /// (a missing column), with the file.
  static caf::expected<csv_table> read(const std::string& file, std::span<const std::string_view> columns);

  const std::vector<row>& rows() const { return rows_; }
  /// "FILE, line N: why" as an error.
  caf::error refused(const row& where, const std::string& why) const;
  /// Errors: corrupt, if it is no number above 0 (or no whole one).
  caf::expected<double> number(const row& from, size_t column, bool whole) const;
  /// The same, from 0 on.
  caf::expected<double> count_or_none(const row& from, size_t column) const;

private:
  std::string file_;
  std::vector<std::string> columns_;
  std::vector<row> rows_;
};

} // namespace ringmaster
