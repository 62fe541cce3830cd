#pragma once

#include <string>
#include <vector>

namespace ringmaster::training {

/// Plans on a front of time and memory.
struct front_points {
  struct point {
    double seconds = 0;
    double bytes = 0;
    std::string label; ///< One line.
  };
  std::string title;
  std::vector<point> points; ///< Fastest first.
  double room_bytes = 0;     ///< What a device has.
};

/// Memory over time as SVG, with the limit as a line and labels in a column beside it, a line from each to its point;
/// of many points the first, the last and some between are labelled.
std::string picture_of(const front_points& x);

} // namespace ringmaster::training
