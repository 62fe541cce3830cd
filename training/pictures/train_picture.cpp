#include "training/pictures/train_picture.hpp"

#include "messages/errc.hpp"
#include "runtime/drawing/svg_canvas.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/pictures/train_boxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster {

using namespace training;

namespace {

using anchor = svg_canvas::anchor;

// Pixels.
constexpr double width = 1400, left = 92, right = 112, top = 132, bottom = 62, letter_size = 15, digit_width = 0.64,
                 digits_min = 8.5, tick_width = 1.2, swatch = 16;
constexpr auto columns = static_cast<uint32_t>(width - left - right);
constexpr uint32_t few_ranks = 10; ///< Rows are higher then.
constexpr uint32_t swatches_max = 4;
constexpr std::string_view ink = svg_canvas::ink, faint = "#5c5c66", grid = "#d4d4dc", paper = "#ffffff",
                           memory_fill = "#dfe3ec", memory_line = "#7d889e";

struct kind_style {
  std::string_view name, colour;
};

constexpr std::array<kind_style, box_kinds> styles{{{"forward", "#4a7fd4"},
                                                    {"backward", "#3d9a5b"},
                                                    {"gradient by input", "#ef9a2f"},
                                                    {"gradient by weight", "#8c62bd"},
                                                    {"communication", "#dc6274"},
                                                    {"loss", "#2f9fa3"},
                                                    {"update", "#3b4252"},
                                                    {"loading", "#b4b8c2"}}};

const kind_style& style_of(box_kind x) {
  return styles[static_cast<size_t>(x)];
}

/// The first layers are the lightest.
std::string colour_of(box_kind kind, uint32_t chunk, uint32_t chunks) {
  const std::string colour{style_of(kind).colour};
  if (kind > box_kind::backward_weight || chunks < 2)
    return colour;
  const auto part = static_cast<double>(chunk) / (chunks - 1);
  return part < 0.5 ? mixed_colour(colour, paper, 0.9 * (0.5 - part))
                    : mixed_colour(colour, "#000000", 0.56 * (part - 0.5));
}

/// "ms", and how many there are in the cost model's unit.
struct time_scale {
  std::string name;
  double factor = 1;

  static time_scale of(const cost_model& costs, double end) {
    if (costs.time_unit() != "s")
      return {std::string{costs.time_unit()}, 1};
    return end >= 1 ? time_scale{"s", 1} : end >= 1e-3 ? time_scale{"ms", 1e3} : time_scale{"us", 1e6};
  }
  std::string text(double time) const { return fmt::format("{:.4g} {}", time * factor, name); }
};

/// 1, 2 or 5 of a power of ten, so that some ten of them fit.
double tick_step(double end) {
  const auto power = std::pow(10, std::floor(std::log10(end / 10)));
  for (double step : {1, 2, 5})
    if (end / (step * power) <= 12)
      return step * power;
  return 10 * power;
}

/// About as wide as the letters are.
double width_of(std::string_view text, double size) {
  double result = 0;
  for (auto c : text)
    result += std::string_view{"fijlrt "}.find(c) != std::string_view::npos ? 0.36 : c == 'm' || c == 'w' ? 0.9 : 0.62;
  return result * size;
}

class painter {
public:
  painter(const train_run& x, const training_outcome& found, const train_boxes& boxes)
    : what_(x), found_(found), boxes_(boxes), end_(std::max(found.end, 1e-12)), scale_(time_scale::of(*x.costs, end_)),
      row_height_(x.ranks <= few_ranks ? 34 : 24), memory_height_(x.ranks <= few_ranks ? 34 : 22),
      gap_(x.ranks <= few_ranks ? 16 : 8) {}

  std::string paint() {
    paint_title();
    paint_legend();
    paint_axis();
    auto y = top;
    for (uint32_t rank = 0; rank < boxes_.ranks.size(); ++rank) {
      paint_rank(rank, y);
      y += height_of(boxes_.ranks[rank]);
    }
    paint_peak();
    return canvas_.finish(width, y + bottom - gap_);
  }

private:
  double x_of(double time) const { return left + (width - left - right) * time / end_; }

  double aside_height(const rank_boxes& its) const { return its.aside.empty() ? 0 : row_height_ / 2; }
  double height_of(const rank_boxes& its) const { return row_height_ + aside_height(its) + memory_height_ + gap_; }
  double heights() const {
    double result = 0;
    for (auto& each : boxes_.ranks)
      result += height_of(each);
    return result;
  }

  void paint_title() {
    auto batches = fmt::format("{} micro-batch{}", boxes_.micro_batches, boxes_.micro_batches == 1 ? "" : "es");
    if (boxes_.samples > 0)
      batches += " of " + counted(boxes_.samples, "sample");
    const auto title = what_.title.empty() ? fmt::format("{}: {}, {}, {}", what_.strategy, counted(what_.ranks, "rank"),
                                                         counted(what_.model_layers(), "layer"), batches)
                                           : what_.title;
    paint_line(30, 24, title, true);
    paint_line(60, 17,
               fmt::format("cost model {}: {} to the start of the last event, {} to the end; bubble {:.1f} % of the "
                           "ranks' time{}{}",
                           what_.costs->name(), scale_.text(found_.time), scale_.text(found_.end),
                           100 * found_.bubble_fraction, what_.note.empty() ? "" : "; ", what_.note),
               false);
  }

  /// In letters of that size, or in smaller ones, so that it has room.
  void paint_line(double y, double size, std::string_view text, bool bold) {
    const auto room = (width - left - 10) / ((bold ? 1.1 : 1) * width_of(text, 1));
    canvas_.text(left, y, std::min(size, room), text, anchor::start, ink, bold);
  }

  std::array<bool, box_kinds> kinds_used() const {
    std::array<bool, box_kinds> result{};
    for (auto& each : boxes_.ranks)
      for (auto* row : {&each.own, &each.aside})
        for (auto& box : *row)
          result[static_cast<size_t>(box.kind)] = true;
    return result;
  }

  void paint_legend() {
    constexpr double y = 94, distance = 24;
    auto x = left;
    const auto used = kinds_used();
    for (size_t i = 0; i < used.size(); ++i) {
      if (!used[i])
        continue;
      const auto kind = static_cast<box_kind>(i);
      const auto shades = kind <= box_kind::backward_weight ? std::min(boxes_.chunks, swatches_max) : 1;
      for (uint32_t shade = 0; shade < shades; ++shade, x += swatch)
        canvas_.rectangle(x, y - swatch / 2, swatch, swatch, colour_of(kind, shade, shades), {}, 0);
      x = legend_text(x + 6, y, style_of(kind).name) + distance;
    }
    canvas_.rectangle(x, y - swatch / 2, swatch, swatch, paper, {memory_line, 1}, 0);
    x = legend_text(x + swatch + 6, y, "idle") + distance;
    canvas_.rectangle(x, y - swatch / 2, swatch, swatch, memory_fill, {memory_line, 1}, 0);
    x = legend_text(x + swatch + 6, y, "memory held") + distance;
    if (boxes_.chunks > 1)
      legend_text(x, y, "light: first layers");
  }

  double legend_text(double x, double y, std::string_view text) {
    canvas_.text(x, y, letter_size - 1, text, anchor::start, ink, false);
    return x + width_of(text, letter_size - 1);
  }

  void paint_axis() {
    const auto low = top + heights() - gap_ + 8, end = end_ * scale_.factor, step = tick_step(end);
    for (int i = 0; i * step <= end; ++i) {
      const auto x = x_of(i * step / scale_.factor);
      canvas_.line(x, top - 6, x, low, {grid, 1});
      canvas_.text(x, low + 13, letter_size, fmt::format("{:.4g}", i * step), anchor::middle, ink, false);
    }
    canvas_.line(left, low, width - right, low, {ink, 1});
    canvas_.text((left + width - right) / 2, low + 34, letter_size, "time, " + scale_.name, anchor::middle, ink, true);
    canvas_.text(width - right + 8, top - 12, letter_size - 2, "peak memory", anchor::start, faint, false);
  }

  void paint_rank(uint32_t rank, double y) {
    auto& its = boxes_.ranks[rank];
    canvas_.text(left - 10, y + row_height_ / 2, letter_size, fmt::format("{} {}", what_.row, rank), anchor::end, ink,
                 true);
    for (auto& box : its.own)
      paint_box(box, y, row_height_, true);
    y += row_height_;
    for (auto& box : its.aside)
      paint_box(box, y + 1, aside_height(its) - 2, false);
    if (!its.aside.empty())
      canvas_.text(left - 10, y + aside_height(its) / 2, letter_size - 4, "2nd stream", anchor::end, faint, false);
    y += aside_height(its);
    paint_memory(its, y);
    canvas_.text(width - right + 8, y + memory_height_ / 2 + 2, letter_size - 1,
                 count_text(found_.ranks[rank].peak_memory), anchor::start, ink, rank == found_.peak_rank);
  }

  void paint_box(const train_box& box, double y, double height, bool numbered) {
    const auto x = x_of(box.start), box_width = std::max(tick_width, x_of(box.end) - x);
    const auto colour = colour_of(box.kind, box.chunk, boxes_.chunks);
    const auto edge = box_width > 4 ? svg_canvas::stroke{paper, 0.8} : svg_canvas::stroke{};
    canvas_.rectangle(x, y, box_width, height, colour, edge, 0);
    if (!numbered || !box.micro_batch)
      return;
    const auto number = fmt::format("{}", *box.micro_batch);
    const auto digits = digit_width * static_cast<double>(number.size());
    const auto size = std::min({17.0, height * 0.62, (box_width - 4) / digits});
    if (size >= digits_min)
      canvas_.text(x + box_width / 2, y + height / 2, size, number, anchor::middle, text_colour_on(colour), false);
  }

  double peak() const { return std::max(1.0, static_cast<double>(found_.ranks[found_.peak_rank].peak_memory)); }

  /// Of what is held within a pixel the most is drawn.
  void paint_memory(const rank_boxes& its, double y) {
    const auto base = y + memory_height_;
    std::vector<svg_canvas::point> curve;
    for (auto& step : its.memory) {
      const auto x = x_of(step.start);
      const auto height = base - (memory_height_ - 3) * static_cast<double>(step.held) / peak();
      if (!curve.empty() && x - curve.back().x < 1)
        curve.back().y = std::min(curve.back().y, height);
      else if (curve.empty() || curve.back().y != height)
        curve.push_back({x, height});
    }
    canvas_.steps(curve, end_of(its), base, memory_fill, {memory_line, 1});
  }

  /// Where the rank's last operation ends.
  double end_of(const rank_boxes& its) const {
    double end = its.memory.empty() ? 0 : its.memory.back().start;
    for (auto* row : {&its.own, &its.aside})
      if (!row->empty())
        end = std::max(end, row->back().end);
    return x_of(end);
  }

  void paint_peak() {
    auto base = top;
    for (uint32_t rank = 0; rank < found_.peak_rank; ++rank)
      base += height_of(boxes_.ranks[rank]);
    base += height_of(boxes_.ranks[found_.peak_rank]) - gap_;
    auto& its = found_.ranks[found_.peak_rank];
    const auto text = fmt::format("peak {} {}", count_text(its.peak_memory), what_.costs->memory_unit());
    const auto x = x_of(its.peak_at), y = base - memory_height_ + 3, size = letter_size - 2,
               text_width = 1.1 * width_of(text, size);
    const bool before = x + text_width + 20 > width - right;
    const auto start = before ? x - text_width - 10 : x + 10, middle = base - memory_height_ / 2 + 2;
    canvas_.circle(x, y, 4, ink, {paper, 1});
    canvas_.rectangle(start - 3, middle - size / 2 - 2, text_width + 6, size + 4, paper, {}, 3);
    canvas_.text(start, middle, size, text, anchor::start, ink, true);
  }

  const train_run& what_;
  const training_outcome& found_;
  const train_boxes& boxes_;
  double end_;
  time_scale scale_;
  double row_height_, memory_height_, gap_;
  svg_canvas canvas_;
};

caf::error cannot_draw(std::string why) {
  return invalid(std::move(why));
}

} // namespace

caf::expected<std::string> picture_of(const train_run& x, const training_outcome& found) {
  if (found.ranks.size() > pictured_ranks_max)
    return cannot_draw(fmt::format("a picture has at most {} ranks, not {}", pictured_ranks_max, found.ranks.size()));
  auto boxes = boxes_of(found);
  if (boxes.count() > pictured_boxes_max)
    boxes = boxes.in_columns(columns, found.end);
  return painter{x, found, boxes}.paint();
}

using namespace training;

training_outcome first_of_stages(const training_outcome& found, const mesh& shape) {
  const auto size = shape.stage_size();
  ensure(size > 0 && found.ranks.size() % size == 0, "ranks are whole stages");
  training_outcome result = found;
  result.ranks.clear();
  result.events.clear();
  for (uint32_t rank = 0; rank < found.ranks.size(); rank += size)
    result.ranks.push_back(found.ranks[rank]);
  result.peak_rank = found.peak_rank / size;
  for (auto x : found.events)
    if (x.rank % size == 0) {
      x.rank /= size;
      x.peer /= size;
      result.events.push_back(x);
    }
  return result;
}

} // namespace ringmaster
