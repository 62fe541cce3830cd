#include "training/pictures/front_picture.hpp"

#include "runtime/drawing/svg_canvas.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

using anchor = svg_canvas::anchor;
constexpr std::string_view faint = "#dddddd", dots = "#1f5fa8", limit = "#a02020";

/// Converts seconds and bytes to pixels. Scales are on the left, labels in a column on the right.
struct front_frame {
  static constexpr double wide = 1180, high = 520, before = 76, labels = 670, right = 640, above = 66, below = 52;
  static constexpr double bottom = high - below;

  double seconds_least, seconds_most, bytes_most;

  double x(double seconds) const {
    const auto part = (seconds - seconds_least) / std::max(seconds_most - seconds_least, 1e-9);
    return before + (0.02 + 0.96 * part) * (right - before);
  }
  double y(double bytes) const { return bottom - bytes / bytes_most * (bottom - above); }
};

front_frame frame_of(const front_points& x) {
  front_frame at{HUGE_VAL, 0, x.room_bytes * 1.05};
  for (auto& point : x.points) {
    at.seconds_least = std::min(at.seconds_least, point.seconds);
    at.seconds_most = std::max(at.seconds_most, point.seconds);
    at.bytes_most = std::max(at.bytes_most, point.bytes * 1.05);
  }
  ensure(at.bytes_most > 0, "plans and devices have memory");
  return at;
}

void draw_scales(svg_canvas& to, const front_frame& at) {
  for (double bytes = 0; bytes <= at.bytes_most; bytes += axis_tick(at.bytes_most)) {
    to.line(front_frame::before, at.y(bytes), front_frame::right, at.y(bytes), {faint, 1});
    to.text(front_frame::before - 8, at.y(bytes), 12, fmt::format("{:.0f} GB", bytes / 1e9), anchor::end,
            svg_canvas::ink, false);
  }
  const auto step = axis_tick(std::max(at.seconds_most - at.seconds_least, 1e-6));
  for (auto s = std::ceil(at.seconds_least / step) * step; s <= at.seconds_most; s += step) {
    to.line(at.x(s), front_frame::bottom, at.x(s), front_frame::bottom + 4, {svg_canvas::ink, 1});
    to.text(at.x(s), front_frame::bottom + 16, 12, fmt::format("{:.4g}", s), anchor::middle, svg_canvas::ink, false);
  }
  to.text((front_frame::before + front_frame::right) / 2, front_frame::high - 14, 13, "seconds of an iteration",
          anchor::middle, svg_canvas::ink, false);
}

void draw_limit(svg_canvas& to, const front_frame& at, double room_bytes) {
  to.line(front_frame::before, at.y(room_bytes), front_frame::right, at.y(room_bytes), {limit, 1.5, "6 4"});
  to.text(front_frame::right, at.y(room_bytes) - 9, 12,
          fmt::format("what a device has for the model: {:.0f} GB", room_bytes / 1e9), anchor::end, limit, false);
}

/// The points that have a label: the first, the last, and some between.
std::vector<size_t> labelled(size_t points) {
  constexpr size_t most = 24;
  std::vector<size_t> result;
  for (size_t i = 0; i < std::min(points, most); ++i)
    result.push_back(points <= most ? i : i * (points - 1) / (most - 1));
  return result;
}

/// Heights of labels close to the wanted ones, which ascend, without overlaps.
std::vector<double> apart(std::vector<double> wanted) {
  constexpr double label_height = 16;
  for (size_t i = 1; i < wanted.size(); ++i)
    wanted[i] = std::max(wanted[i], wanted[i - 1] + label_height);
  auto lowest = front_frame::bottom;
  for (auto i = wanted.size(); i-- > 0; lowest = wanted[i] - label_height)
    wanted[i] = std::min(wanted[i], lowest);
  return wanted;
}

void draw_labels(svg_canvas& to, const front_frame& at, const std::vector<front_points::point>& points) {
  const auto which = labelled(points.size());
  ensure(which.empty() || which.back() < points.size(), "a label is of a point");
  std::vector<double> heights;
  for (auto i : which)
    heights.push_back(at.y(points[i].bytes));
  heights = apart(std::move(heights));
  for (size_t i = 0; i < which.size(); ++i) {
    auto& point = points[which[i]];
    to.line(at.x(point.seconds), at.y(point.bytes), front_frame::labels - 6, heights[i], {"#bbbbbb", 0.7});
    to.text(front_frame::labels, heights[i], 11, point.label, anchor::start, svg_canvas::ink, false);
  }
}

} // namespace

std::string picture_of(const front_points& x) {
  svg_canvas to;
  to.text(front_frame::before, 20, 15, x.title, anchor::start, svg_canvas::ink, true);
  to.text(front_frame::before, 40, 12,
          "memory of a device over time: no other plan is both as fast and as small; TP, CP, DP, EP, PP: tensor-, "
          "context-, data-, expert- and pipeline-parallel ranks",
          anchor::start, svg_canvas::ink, false);
  if (x.points.empty()) {
    to.text(front_frame::before, 80, 13,
            fmt::format("no plan fits in what a device has for the model, {:.0f} GB", x.room_bytes / 1e9),
            anchor::start, limit, false);
    return to.finish(front_frame::wide, front_frame::high);
  }
  const auto at = frame_of(x);
  draw_scales(to, at);
  draw_limit(to, at, x.room_bytes);
  draw_labels(to, at, x.points);
  for (auto& point : x.points) // on top of the lines to their labels
    to.circle(at.x(point.seconds), at.y(point.bytes), 4, dots, {"#ffffff", 1});
  return to.finish(front_frame::wide, front_frame::high);
}

} // namespace ringmaster::training
