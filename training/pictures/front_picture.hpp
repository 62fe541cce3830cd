#pragma once

#include <string>
#include <vector>

namespace ringmaster::training {

/// Plans on a Pareto front of time and memory.
struct front_points {
  struct point {
    double seconds = 0;
    double bytes = 0;
    std::string label; ///< One line.
  };
  std::string title;
  std::vector<point> points; ///< Fastest first.
  double room_bytes = 0;     ///< The memory of a device.
};

/// Memory over time as SVG, with a line for the limit, and a column of labels that are joined to their points. Of many
/// points, the first, the last and some between have labels.
std::string picture_of(const front_points& x);

} // namespace ringmaster::training
