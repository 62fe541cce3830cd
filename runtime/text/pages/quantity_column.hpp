#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// The format of a table's column of numbers: all have one unit, which is in the column's head, such as ms, GB or
/// M elements. The largest number has one to three digits before the point; the smallest has four digits, with at most
/// four decimals.
class quantity_column {
public:
  /// `unit`: "s", "bytes" (1 GB is 10^9 bytes, as in data sheets), or what is counted, such as "elements". Values must
  /// not be negative; zeros do not count.
  quantity_column(std::span<const double> values, std::string_view unit);

  const std::string& unit() const noexcept { return unit_; }
  /// Without the unit.
  std::string text(double value) const;

private:
  double scale_ = 1; ///< Given units in a written one.
  int decimals_ = 0;
  std::string unit_;
};

/// One number by itself, with its unit: "77.85 ms", "1.048 TB", "339.7 M elements".
std::string quantity_text(double value, std::string_view unit);

} // namespace ringmaster
