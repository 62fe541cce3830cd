#include "training/pictures/loss_picture.hpp"

#include "runtime/drawing/svg_canvas.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr double width = 760, height = 420, left = 70, right = 24, top = 56, bottom = 48;
constexpr std::string_view each_colour = "#b8cbe6", mean_colour = "#1f5fa8", held_colour = "#c4541a",
                           lost_colour = "#a02020", grid_colour = "#dddddd";

/// Converts steps and losses to pixels.
struct loss_frame {
  double first, last, low, high;

  double x(double step) const { return left + (step - first) / std::max(last - first, 1.) * (width - left - right); }
  double y(double loss) const { return top + (high - loss) / (high - low) * (height - top - bottom); }
};

loss_frame frame_of(const loss_curve& x) {
  loss_frame result{static_cast<double>(x.first), static_cast<double>(x.first + x.steps.size()), 0, 0};
  for (auto each : x.steps)
    if (std::isfinite(each))
      result.high = std::max(result.high, each);
  for (auto& each : x.held_out)
    if (std::isfinite(each.loss)) // a model may diverge
      result.high = std::max(result.high, each.loss);
  if (x.beside)
    result.high = std::max(result.high, x.beside->loss);
  if (result.high <= 0)
    result.high = 1;
  ensure(result.high > result.low && result.last >= result.first, "the axes have ranges");
  return result;
}

void draw_axes(svg_canvas& to, const loss_frame& at) {
  for (double loss = 0; loss <= at.high; loss += axis_tick(at.high)) {
    to.line(left, at.y(loss), width - right, at.y(loss), {grid_colour, 1});
    to.text(left - 8, at.y(loss), 12, fmt::format("{:.3g}", loss), svg_canvas::anchor::end, svg_canvas::ink, false);
  }
  const auto step = std::max(axis_tick(std::max(at.last - at.first, 1.)), 1.);
  for (auto s = std::ceil(at.first / step) * step; s <= at.last; s += step)
    to.text(at.x(s), height - bottom + 16, 12, fmt::format("{:.0f}", s), svg_canvas::anchor::middle, svg_canvas::ink,
            false);
  to.text((left + width - right) / 2, height - 12, 13, "step", svg_canvas::anchor::middle, svg_canvas::ink, false);
}

/// At most one line per pixel: for several steps in one pixel, from the smallest to the largest.
void draw_steps(svg_canvas& to, const loss_frame& at, const loss_curve& x) {
  const auto stride = std::max<size_t>(x.steps.size() / 700, 1);
  double before = 0;
  if (x.steps.size() == 1) // no line
    to.circle(at.x(static_cast<double>(x.first)), at.y(x.steps[0]), 4, mean_colour, {"none", 0});
  for (size_t i = 0; i < x.steps.size(); i += stride) {
    const auto begin = x.steps.begin() + static_cast<ptrdiff_t>(i);
    const auto [low, high] = std::minmax_element(begin,
                                                 begin + static_cast<ptrdiff_t>(std::min(stride, x.steps.size() - i)));
    const auto place = at.x(static_cast<double>(x.first + i));
    if (i > 0)
      to.line(at.x(static_cast<double>(x.first + i - stride)), at.y(before), place, at.y(*begin), {each_colour, 1});
    if (stride > 1)
      to.line(place, at.y(*low), place, at.y(*high), {each_colour, 1});
    before = x.steps[std::min(i + stride, x.steps.size()) - 1];
  }
}

/// The mean of the latest fiftieth of the steps, so that it follows the curve of short runs too.
void draw_mean(svg_canvas& to, const loss_frame& at, const loss_curve& x) {
  const auto window = std::max<size_t>(x.steps.size() / 50, 1), stride = std::max<size_t>(x.steps.size() / 700, 1);
  double sum = 0, before = 0;
  for (size_t i = 0; i < x.steps.size(); ++i) {
    sum += x.steps[i] - (i < window ? 0 : x.steps[i - window]);
    if (i % stride != 0)
      continue;
    const auto mean = sum / static_cast<double>(std::min(i + 1, window));
    if (i > 0)
      to.line(at.x(static_cast<double>(x.first + i - stride)), at.y(before), at.x(static_cast<double>(x.first + i)),
              at.y(mean), {mean_colour, 2});
    before = mean;
  }
}

} // namespace

std::string picture_of(const loss_curve& x) {
  svg_canvas to;
  const auto at = frame_of(x);
  to.text(left, 20, 15, x.title, svg_canvas::anchor::start, svg_canvas::ink, true);
  to.text(left, 40, 12,
          x.measure + ": each step, thin; running mean, thick; orange: held out; red line: a step begun again",
          svg_canvas::anchor::start, svg_canvas::ink, false);
  draw_axes(to, at);
  for (auto step : x.given_up)
    to.line(at.x(static_cast<double>(step)), top, at.x(static_cast<double>(step)), height - bottom,
            {lost_colour, 1.5, "4 3"});
  if (x.beside) {
    to.line(left, at.y(x.beside->loss), width - right, at.y(x.beside->loss), {held_colour, 1, "6 4"});
    to.text(width - right, at.y(x.beside->loss) - 9, 12, x.beside->name, svg_canvas::anchor::end, held_colour, false);
  }
  draw_steps(to, at, x);
  draw_mean(to, at, x);
  for (auto& each : x.held_out)
    to.circle(at.x(static_cast<double>(each.step)), at.y(each.loss), 4, held_colour, {"none", 0});
  return to.finish(width, height);
}

} // namespace ringmaster::training
