#include "runtime/drawing/chart.hpp"

#include "runtime/drawing/svg_canvas.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster {

namespace {

using anchor = svg_canvas::anchor;

/// A logarithmic axis between two powers of the base.
struct axis {
  double base, low, high; ///< In powers.
  double start, end;      ///< In pixels.

  double at_power(double power) const { return start + (end - start) * (power - low) / (high - low); }
  double at(double value) const { return at_power(std::log(value) / std::log(base)); }
  double value(double power) const { return std::pow(base, power); }
};

std::string value_text(chart_unit unit, double value) {
  return unit == chart_unit::microseconds ? duration_text(static_cast<uint64_t>(std::llround(value * 1000)))
                                          : fmt::format("{:g} GB/s", value);
}

class chart_painter {
  // Pixels.
  static constexpr double width = 1040, height = 640, left = 96, right = 220, top = 100, bottom = 72, letter_size = 16,
                          name_distance = 20;
  static constexpr std::string_view grid = "#c4c4cc", fine_grid = "#ececf0";

public:
  explicit chart_painter(const chart& x) : chart_(x) {
    ensure(!x.lines.empty(), "a chart has a line");
    auto lowest_size = UINT64_MAX, highest_size = uint64_t{0};
    auto lowest = HUGE_VAL, highest = 0.0;
    for (auto& line : x.lines) {
      ensure(!line.points.empty(), "a line of a chart has a point");
      for (auto& point : line.points) {
        lowest_size = std::min(lowest_size, point.bytes);
        highest_size = std::max(highest_size, point.bytes);
        lowest = std::min(lowest, point.value);
        highest = std::max(highest, point.value);
      }
    }
    ensure(lowest_size > 0 && lowest > 0, "logarithmic axes have values above 0");
    auto first = std::log2(static_cast<double>(lowest_size)), last = std::log2(static_cast<double>(highest_size));
    sizes_ = {2, first, std::max(last, first + 1), left, width - right};
    values_ = {10, std::floor(std::log10(lowest)), std::ceil(std::log10(highest)), height - bottom, top};
    values_.high = std::max(values_.high, values_.low + 1);
  }

  std::string paint() {
    canvas_.text(24, 28, 22, chart_.title, anchor::start, svg_canvas::ink, true);
    canvas_.text(24, 54, letter_size, chart_.remark, anchor::start, svg_canvas::ink, false);
    paint_axes();
    auto ends = name_heights();
    auto count = static_cast<uint32_t>(chart_.lines.size());
    for (uint32_t i = 0; i < count; ++i)
      paint_line(chart_.lines[i], distinct_colour(i, count), ends[i]);
    return canvas_.finish(width, height);
  }

private:
  void paint_axes() {
    for (auto power = values_.low; power <= values_.high; ++power) {
      for (int part = 2; part < 10 && power < values_.high; ++part)
        across(values_.at(part * values_.value(power)), {fine_grid, 1});
      auto y = values_.at_power(power);
      across(y, {grid, 1});
      canvas_.text(left - 10, y, letter_size, value_text(chart_.unit, values_.value(power)), anchor::end,
                   svg_canvas::ink, false);
    }
    auto step = std::max(1.0, std::ceil((sizes_.high - sizes_.low) / 9)); // at most ten labels fit
    for (auto power = std::ceil(sizes_.low); power <= sizes_.high; power += step) {
      auto x = sizes_.at_power(power);
      auto size = bytes_text(static_cast<uint64_t>(sizes_.value(power)));
      canvas_.line(x, top, x, height - bottom, {grid, 1});
      canvas_.text(x, height - bottom + 18, letter_size, size, anchor::middle, svg_canvas::ink, false);
    }
    canvas_.text(left, top - 18, letter_size, chart_.axis, anchor::start, svg_canvas::ink, true);
    canvas_.text((left + width - right) / 2, height - 24, letter_size, "size: what a rank contributes in all",
                 anchor::middle, svg_canvas::ink, true);
  }

  void across(double y, svg_canvas::stroke line) { canvas_.line(left, y, width - right, y, line); }

  /// Next to the ends of the lines, moved apart where they would overlap.
  std::vector<double> name_heights() const {
    std::vector<double> result;
    std::vector<size_t> order;
    for (auto& line : chart_.lines) {
      order.push_back(order.size());
      result.push_back(values_.at(line.points.back().value));
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return result[a] < result[b]; });
    auto below = height - bottom; // from the bottom up, then from the top down
    for (auto i = order.rbegin(); i != order.rend(); ++i, below -= name_distance)
      below = result[*i] = std::min(result[*i], below);
    auto above = top;
    for (auto i = order.begin(); i != order.end(); ++i, above += name_distance)
      above = result[*i] = std::max(result[*i], above);
    return result;
  }

  void paint_line(const chart_line& line, std::string_view colour, double name_height) {
    auto x = 0.0, y = 0.0;
    for (size_t i = 0; i < line.points.size(); ++i) {
      auto next_x = sizes_.at(static_cast<double>(line.points[i].bytes)), next_y = values_.at(line.points[i].value);
      if (i > 0)
        canvas_.line(x, y, next_x, next_y, {colour, 3});
      canvas_.circle(next_x, next_y, 4.5, colour, {});
      x = next_x;
      y = next_y;
    }
    canvas_.line(x, y, width - right + 24, name_height, {colour, 1.6});
    canvas_.circle(width - right + 26, name_height, 6, colour, {});
    canvas_.text(width - right + 38, name_height, 17, line.name, anchor::start, svg_canvas::ink, true);
  }

  const chart& chart_;
  axis sizes_{}, values_{};
  svg_canvas canvas_;
};

} // namespace

std::string svg_of(const chart& x) {
  return chart_painter{x}.paint();
}

} // namespace ringmaster
