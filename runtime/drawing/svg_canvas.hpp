#pragma once

#include "runtime/drawing/walk_through.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

/// Collects the elements of an SVG picture. Lengths are pixels.
class svg_canvas {
public:
  struct stroke {
    std::string_view colour = "none";
    double width = 1;
    std::string_view dashes = ""; ///< The stroke-dasharray; empty: none.
  };
  static constexpr std::string_view ink = "#222222"; ///< The color of letters and main lines.
  enum class anchor { start, middle, end };
  struct point {
    double x = 0, y = 0;
  };

  void rectangle(double x, double y, double width, double height, std::string_view fill, stroke line, double radius);
  void line(double x1, double y1, double x2, double y2, stroke line);
  void circle(double x, double y, double radius, std::string_view fill, stroke line);
  /// An arrowhead with its point at (x, y); `direction` is 1 to the right, -1 to the left.
  void arrowhead(double x, double y, int direction, std::string_view fill);
  /// A step function from each point's x at the point's y, filled down to `base`; it ends at `end`.
  void steps(std::span<const point> curve, double end, double base, std::string_view fill, stroke line);
  /// `y` is the middle of the letters.
  void text(double x, double y, double size, std::string_view text, anchor where, std::string_view fill, bool bold);

  /// The finished file.
  std::string finish(double width, double height) const;

private:
  std::string body_;
};

/// Color `index` of `count` colors that differ as much as possible, as "#rrggbb".
std::string distinct_colour(uint32_t index, uint32_t count);
/// A color between two, `part` of the way; all are "#rrggbb".
std::string mixed_colour(std::string_view from, std::string_view to, double part);
/// The distance of ticks: 1, 2 or 5 times a power of ten, for about five ticks within the range.
double axis_tick(double range);
/// Black or white, for good contrast with the color.
std::string_view text_colour_on(std::string_view colour);

/// The lanes in which a round's arrows are drawn, so that no two of them touch.
struct lane_plan {
  std::vector<uint32_t> lanes; ///< By activity.
  uint32_t count = 0;
  std::vector<uint32_t> chain_starts; ///< The first lanes of later links of a chain.
};

/// Arrows of one lane may meet at a rank from both sides. A step of a chain is below the step it waits for; short
/// arrows are above long ones.
lane_plan lanes_of(const drawn_round& round);

} // namespace ringmaster
