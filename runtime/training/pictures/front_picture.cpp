#include "runtime/training/pictures/front_picture.hpp"

#include "runtime/drawing/svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

/// From seconds and bytes to places in the picture.
struct front_frame {
  static constexpr double wide = 860, high = 480, before = 76, behind = 200, above = 56, below = 52;

  double seconds_least, seconds_most, bytes_most;

  double x(double seconds) const {
    const auto part = (seconds - seconds_least) / std::max(seconds_most - seconds_least, 1e-9);
    return before + part * (wide - before - behind);
  }
  double y(double bytes) const { return high - below - bytes / bytes_most * (high - above - below); }
};

void draw_scales(svg_canvas& to, const front_frame& at) {
  constexpr std::string_view grid = "#dddddd";
  using anchor = svg_canvas::anchor;
  const auto right = front_frame::wide - front_frame::behind, bottom = front_frame::high - front_frame::below;
  for (double bytes = 0; bytes <= at.bytes_most; bytes += axis_tick(at.bytes_most)) {
    to.line(front_frame::before, at.y(bytes), right, at.y(bytes), {grid, 1});
    to.text(front_frame::before - 8, at.y(bytes), 12, fmt::format("{:.0f} GB", bytes / 1e9), anchor::end,
            svg_canvas::ink, false);
  }
  const auto step = axis_tick(std::max(at.seconds_most - at.seconds_least, 1e-6));
  for (auto s = std::ceil(at.seconds_least / step) * step; s <= at.seconds_most; s += step)
    to.text(at.x(s), bottom + 16, 12, fmt::format("{:.4g}", s), anchor::middle, svg_canvas::ink, false);
  to.text((front_frame::before + right) / 2, front_frame::high - 14, 13, "seconds of an iteration", anchor::middle,
          svg_canvas::ink, false);
}

} // namespace

std::string picture_of(const front_points& x) {
  constexpr std::string_view dots = "#1f5fa8", limit = "#a02020";
  constexpr double label_height = 14;
  svg_canvas to;
  front_frame at{HUGE_VAL, 0, x.room_bytes * 1.05};
  for (auto& point : x.points) {
    at.seconds_least = std::min(at.seconds_least, point.seconds);
    at.seconds_most = std::max(at.seconds_most, point.seconds);
    at.bytes_most = std::max(at.bytes_most, point.bytes * 1.05);
  }
  to.text(front_frame::before, 20, 15, x.title, svg_canvas::anchor::start, svg_canvas::ink, true);
  to.text(front_frame::before, 40, 12, "memory of a device over time: no other plan is both as fast and as small",
          svg_canvas::anchor::start, svg_canvas::ink, false);
  if (x.points.empty())
    return to.finish(front_frame::wide, front_frame::high);
  draw_scales(to, at);
  to.line(front_frame::before, at.y(x.room_bytes), front_frame::wide - front_frame::behind, at.y(x.room_bytes),
          {limit, 1.5, "6 4"});
  double free_from = 0; // below the last label
  for (auto& point : x.points) {
    to.circle(at.x(point.seconds), at.y(point.bytes), 4, dots, {"none", 0});
    if (at.y(point.bytes) < free_from)
      continue;
    to.text(at.x(point.seconds) + 8, at.y(point.bytes), 11, point.label, svg_canvas::anchor::start, svg_canvas::ink,
            false);
    free_from = at.y(point.bytes) + label_height;
  }
  return to.finish(front_frame::wide, front_frame::high);
}

} // namespace ringmaster::training
