#include "training/layouts/layout_picture.hpp"

#include "messages/errc.hpp"
#include "runtime/drawing/svg_canvas.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

using anchor = svg_canvas::anchor;

class layout_painter {
  // Pixels.
  static constexpr double left = 220, top = 130, edge = 24, gap = 22, weight_side = 96, weight_side_min = 16, pad = 14,
                          cell_height = weight_side + 84, letter_size = 15, small_size = 13, slice_width = 180,
                          slice_height = 16;
  static constexpr std::string_view ink = svg_canvas::ink, faint = "#5c5c66", line_colour = "#7d889e",
                                    row_fill = "#f3f4f8", paper = "#ffffff";

public:
  explicit layout_painter(const tensor_layout& x) : layout_(x), sides_(x.sides()) {}

  std::string paint() {
    paint_head();
    for (uint32_t data = 0; data < sides_.data; ++data)
      paint_group(data);
    for (uint32_t rank = 0; rank < layout_.ranks(); ++rank)
      paint_rank(rank);
    return canvas_.finish(std::max(left + sides_.tensor * (cell_width() + gap) + edge, 900.),
                          top + sides_.data * (cell_height + gap) + edge);
  }

private:
  double cell_width() const {
    const auto shown = std::max<double>(1, static_cast<double>(layout_.layers().size()));
    return pad + shown * (weight_side + pad);
  }
  double x_of(uint32_t tensor) const { return left + tensor * (cell_width() + gap); }
  double y_of(uint32_t data) const { return top + data * (cell_height + gap); }
  std::string colour_of(uint32_t tensor) const { return distinct_colour(tensor, sides_.tensor); }

  void write(double x, double y, std::string_view text, anchor where = anchor::start, std::string_view fill = ink,
             bool bold = false) {
    canvas_.text(x, y, letter_size, text, where, fill, bold);
  }
  void write_small(double x, double y, std::string_view text, std::string_view fill) {
    canvas_.text(x, y, small_size, text, anchor::start, fill, false);
  }

  void paint_head() {
    canvas_.text(edge, 28, 22,
                 fmt::format("{} ranks: {} by tensor, {} by data", layout_.ranks(), sides_.tensor, sides_.data),
                 anchor::start, ink, true);
    write(
      edge, 56,
      fmt::format("rank = data index x {} + tensor index; a row shares each layer, a column has the same part of it",
                  sides_.tensor));
    for (uint32_t tensor = 0; tensor < sides_.tensor; ++tensor)
      write(x_of(tensor) + cell_width() / 2, top - 26, fmt::format("tensor {}", tensor), anchor::middle, ink, true);
  }

  /// A tensor group's background, and its slice of the data.
  void paint_group(uint32_t data) {
    const auto y = y_of(data);
    canvas_.rectangle(left - gap / 2, y - gap / 4, sides_.tensor * (cell_width() + gap), cell_height + gap / 2,
                      row_fill, {}, 6);
    write(edge, y + 18, fmt::format("data {}", data), anchor::start, ink, true);
    const auto first = sides_.tensor * data;
    const auto whole = std::max<double>(1, static_cast<double>(layout_.samples()));
    const auto slice = layout_.samples() > 0 ? layout_.samples_of(first) : range{data, data + 1};
    const auto scale = slice_width / (layout_.samples() > 0 ? whole : sides_.data);
    canvas_.rectangle(edge, y + 36, slice_width, slice_height, paper, {line_colour, 1}, 0);
    canvas_.rectangle(edge + static_cast<double>(slice.begin) * scale, y + 36,
                      std::max(1., static_cast<double>(slice.count()) * scale), slice_height, line_colour, {}, 0);
    write(edge, y + 70,
          layout_.samples() > 0 ? fmt::format("samples {}-{}", slice.begin, slice.end - 1)
                                : fmt::format("slice {} of {}", data, sides_.data),
          anchor::start, faint);
  }

  void paint_rank(uint32_t rank) {
    const auto tensor = sides_.tensor_index(rank);
    const auto x = x_of(tensor), y = y_of(sides_.data_index(rank));
    const auto colour = colour_of(tensor);
    canvas_.rectangle(x, y, cell_width(), cell_height, paper, {colour, 2}, 5);
    write(x + pad, y + 18, fmt::format("rank {}", rank), anchor::start, ink, true);
    for (size_t i = 0; i < layout_.layers().size(); ++i)
      paint_weight(layout_.layers()[i], rank, x + pad + static_cast<double>(i) * (weight_side + pad), y + 34);
  }

  /// The whole weight as a box of about its shape, with the rank's part filled.
  void paint_weight(const cut_layer& layer, uint32_t rank, double x, double y) {
    const auto longest = static_cast<double>(std::max(layer.rows, layer.columns));
    const auto length = [&](uint64_t side) {
      return std::max(weight_side_min, weight_side * static_cast<double>(side) / longest);
    };
    const auto part = layout_.part_of(layer, rank);
    const auto width = length(layer.columns), height = length(layer.rows);
    const auto across = width / static_cast<double>(layer.columns), down = height / static_cast<double>(layer.rows);
    canvas_.rectangle(x + static_cast<double>(part.columns.begin) * across,
                      y + static_cast<double>(part.rows.begin) * down,
                      std::max(1., static_cast<double>(part.columns.count()) * across),
                      std::max(1., static_cast<double>(part.rows.count()) * down), colour_of(sides_.tensor_index(rank)),
                      {}, 0);
    canvas_.rectangle(x, y, width, height, "none", {line_colour, 1}, 0);
    constexpr size_t letters_max = 12;
    write_small(x, y + weight_side + 14,
                as_utf8(layer.name.size() > letters_max ? layer.name.substr(0, letters_max - 2) + ".." : layer.name),
                ink);
    write_small(x, y + weight_side + 33, fmt::format("{}x{}", part.rows.count(), part.columns.count()), faint);
  }

  const tensor_layout& layout_;
  const mesh& sides_;
  svg_canvas canvas_;
};

} // namespace

caf::expected<std::string> picture_of(const tensor_layout& layout) {
  const auto& sides = layout.sides();
  if (std::max(sides.tensor, sides.data) > layout_picture_side_max
      || layout.layers().size() > layout_picture_layers_max)
    return invalid(fmt::format("a picture has at most {0} x {0} ranks and {1} layers, and there are {2} x {3} and {4}",
                               layout_picture_side_max, layout_picture_layers_max, sides.tensor, sides.data,
                               layout.layers().size()));
  return layout_painter{layout}.paint();
}

} // namespace ringmaster::training
