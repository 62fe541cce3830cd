#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster {

struct chart_point {
  uint64_t bytes = 0; ///< > 0
  double value = 0;   ///< > 0
};

struct chart_line {
  std::string name;
  std::vector<chart_point> points; ///< By size, at least one.
};

enum class chart_unit { microseconds, gigabytes_per_second };

/// Measured values by size.
struct chart {
  std::string title;
  std::string remark; ///< Below the title.
  std::string axis;   ///< What the values are.
  chart_unit unit = chart_unit::microseconds;
  std::vector<chart_line> lines; ///< At least one.
};

/// The chart as SVG with two logarithmic axes. Each line's name is at its end.
std::string svg_of(const chart& x);

} // namespace ringmaster
