#include "runtime/drawing/svg_canvas.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

namespace ringmaster {

namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (auto c : text)
    result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

std::string attributes(std::string_view fill, const svg_canvas::stroke& line) {
  auto text = fmt::format(R"(fill="{}" stroke="{}" stroke-width="{:.4g}")", fill, line.colour, line.width);
  if (!line.dashes.empty())
    text += fmt::format(R"( stroke-dasharray="{}")", line.dashes);
  return text;
}

/// Red, green and blue of "#rrggbb".
std::array<int, 3> parts_of(std::string_view colour) {
  ensure(colour.size() == 7 && colour.front() == '#', "a color is #rrggbb");
  std::array<int, 3> result{};
  for (size_t i = 0; i < result.size(); ++i)
    std::from_chars(colour.data() + 1 + 2 * i, colour.data() + 3 + 2 * i, result[i], 16);
  return result;
}

} // namespace

void svg_canvas::rectangle(double x, double y, double width, double height, std::string_view fill, stroke line,
                           double radius) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{}" {}/>)"
                 "\n",
                 x, y, width, height, radius, attributes(fill, line));
}

void svg_canvas::line(double x1, double y1, double x2, double y2, stroke line) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)"
                 "\n",
                 x1, y1, x2, y2, attributes("none", line));
}

void svg_canvas::circle(double x, double y, double radius, std::string_view fill, stroke line) {
  fmt::format_to(std::back_inserter(body_),
                 R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" {}/>)"
                 "\n",
                 x, y, radius, attributes(fill, line));
}

void svg_canvas::arrowhead(double x, double y, int direction, std::string_view fill) {
  constexpr double length = 9, half_width = 5;
  fmt::format_to(std::back_inserter(body_),
                 R"(<polygon points="{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}" fill="{}"/>)"
                 "\n",
                 x, y, x - direction * length, y - half_width, x - direction * length, y + half_width, fill);
}

void svg_canvas::steps(std::span<const point> curve, double end, double base, std::string_view fill, stroke line) {
  if (curve.empty())
    return;
  fmt::format_to(std::back_inserter(body_), R"(<path d="M{:.1f} {:.1f})", curve.front().x, base);
  for (size_t i = 0; i < curve.size(); ++i)
    fmt::format_to(std::back_inserter(body_), "V{:.1f}H{:.1f}", curve[i].y,
                   i + 1 < curve.size() ? curve[i + 1].x : end);
  fmt::format_to(std::back_inserter(body_),
                 R"(V{:.1f}Z" {}/>)"
                 "\n",
                 base, attributes(fill, line));
}

void svg_canvas::text(double x, double y, double size, std::string_view text, anchor where, std::string_view fill,
                      bool bold) {
  constexpr std::array anchors{"start", "middle", "end"};
  constexpr double middle = 0.35; // of the letter size, above the baseline
  fmt::format_to(std::back_inserter(body_),
                 R"(<text x="{:.1f}" y="{:.1f}" font-size="{:.4g}" text-anchor="{}" fill="{}"{}>{}</text>)"
                 "\n",
                 x, y + middle * size, size, anchors[static_cast<size_t>(where)], fill,
                 bold ? R"( font-weight="bold")" : "", escaped(text));
}

std::string svg_canvas::finish(double width, double height) const {
  return fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
                     R"(viewBox="0 0 {0:.0f} {1:.0f}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">)"
                     "\n"
                     R"(<rect width="100%" height="100%" fill="#ffffff"/>)"
                     "\n{2}</svg>\n",
                     width, height, body_);
}

std::string distinct_colour(uint32_t index, uint32_t count) {
  // Hues around the color circle; many neighbours differ in lightness as well.
  auto hue = 6.0 * index / std::max(count, 1u) + 3.5; // the first is blue
  auto lightness = count > 8 && index % 2 == 1 ? 0.68 : 0.46;
  constexpr double saturation = 0.62;
  auto channel = [&](double shift) {
    auto k = std::fmod(hue * 2 + shift, 12);
    auto a = saturation * std::min(lightness, 1 - lightness);
    auto value = lightness - a * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(255 * value));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

std::string mixed_colour(std::string_view from, std::string_view to, double part) {
  const auto a = parts_of(from), b = parts_of(to);
  auto mixed = [&](size_t i) { return static_cast<int>(std::lround(a[i] + part * (b[i] - a[i]))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2));
}

double axis_tick(double range) {
  ensure(range > 0 && std::isfinite(range), "an axis has a range");
  const auto power = std::pow(10, std::floor(std::log10(range / 5)));
  for (auto x : {1., 2., 5.})
    if (range / (x * power) <= 6)
      return x * power;
  return 10 * power;
}

std::string_view text_colour_on(std::string_view colour) {
  const auto [red, green, blue] = parts_of(colour);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? "#000000" : "#ffffff";
}

namespace {

/// In half columns, so that local work is centred on its rank.
struct extent {
  uint32_t first = 0, last = 0;

  bool overlaps(const extent& other) const { return first < other.last && other.first < last; }
};

extent extent_of(const drawn_activity& x) {
  if (x.source == x.destination)
    return {2 * x.source, 2 * x.source + 2};
  return {2 * std::min(x.source, x.destination) + 1, 2 * std::max(x.source, x.destination) + 1};
}

} // namespace

lane_plan lanes_of(const drawn_round& round) {
  const auto& all = round.activities;
  std::vector<size_t> sorted(all.size());
  std::iota(sorted.begin(), sorted.end(), size_t{0});
  auto key = [&](size_t i) {
    auto e = extent_of(all[i]);
    return std::tuple{all[i].order, e.last - e.first, e.first};
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](auto a, auto b) { return key(a) < key(b); });
  lane_plan plan;
  plan.lanes.resize(all.size());
  std::vector<std::vector<extent>> taken; // extents in the lanes of this order
  uint32_t base = 0, order = 0;
  for (auto i : sorted) {
    if (all[i].order != order) {
      base += static_cast<uint32_t>(taken.size());
      taken.clear();
      order = all[i].order;
      plan.chain_starts.push_back(base);
    }
    auto mine = extent_of(all[i]);
    auto free = std::find_if(taken.begin(), taken.end(), [&](auto& lane) {
      return std::none_of(lane.begin(), lane.end(), [&](auto& other) { return mine.overlaps(other); });
    });
    if (free == taken.end())
      free = taken.insert(taken.end(), std::vector<extent>{});
    free->push_back(mine);
    plan.lanes[i] = base + static_cast<uint32_t>(free - taken.begin());
  }
  plan.count = base + static_cast<uint32_t>(taken.size());
  ensure(std::ranges::all_of(plan.lanes, [&](auto lane) { return lane < plan.count; }), "each arrow has a lane");
  return plan;
}

} // namespace ringmaster
