#pragma once

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
    std::string_view dashes = ""; ///< As stroke-dasharray; empty: none.
  };
  static constexpr std::string_view ink = "#222222"; ///< Of letters, and of lines that count.
  enum class anchor { start, middle, end };
  struct point {
    double x = 0, y = 0;
  };

  void rectangle(double x, double y, double width, double height, std::string_view fill, stroke line, double radius);
  void line(double x1, double y1, double x2, double y2, stroke line);
  void circle(double x, double y, double radius, std::string_view fill, stroke line);
  /// An arrowhead with its point at (x, y); `direction` is 1 to the right, -1 to the left.
  void arrowhead(double x, double y, int direction, std::string_view fill);
  /// A step curve, filled down to `base`: from each point's x on it is at the point's y, and it ends at `end`.
  void steps(std::span<const point> curve, double end, double base, std::string_view fill, stroke line);
  /// `y` is the middle of the letters.
  void text(double x, double y, double size, std::string_view text, anchor where, std::string_view fill, bool bold);

  /// The whole file.
  std::string finish(double width, double height) const;

private:
  std::string body_;
};

/// Colour `index` of `count` that differ as far as possible, as "#rrggbb".
std::string distinct_colour(uint32_t index, uint32_t count);
/// A colour, `part` of the way to another one; all of them "#rrggbb".
std::string mixed_colour(std::string_view from, std::string_view to, double part);
/// 1, 2 or 5 times a power of ten, some five of which fill the range of an axis.
double axis_tick(double range);
/// Black or white, whichever can be read on the colour.
std::string_view text_colour_on(std::string_view colour);

} // namespace ringmaster
