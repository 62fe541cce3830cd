#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// How a column of a table writes its numbers: all in one unit, which stands in the column's head, such as ms, GB or
/// M elements. Its largest has one to three digits before the point, its smallest four digits in all, as far as four
/// behind the point go.
class quantity_column {
public:
  /// `unit`: "s", "bytes" (GB is 10^9 of them, as data sheets have it), or what is counted, such as "elements". No
  /// value is negative; those that are 0 do not count.
  quantity_column(std::span<const double> values, std::string_view unit);

  const std::string& unit() const noexcept { return unit_; }
  /// Without the unit.
  std::string text(double value) const;

private:
  double scale_ = 1; ///< Of the unit that was given, in one that is written.
  int decimals_ = 0;
  std::string unit_;
};

/// One number by itself, with its unit: "77.85 ms", "1.048 TB", "339.7 M elements".
std::string quantity_text(double value, std::string_view unit);

} // namespace ringmaster
