#include "messages/errc.hpp"
#include "runtime/drawing/drawing.hpp"
#include "runtime/drawing/svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

using anchor = svg_canvas::anchor;

// Pixels.
constexpr double width_min = 720, left_margin = 104, right_margin = 24, title_height = 96, lane_height = 24,
                 rank_radius = 12, chip_height = 17, letter_width = 7.4, letter_size = 12, gap = 12;
constexpr std::string_view fault_colour = "#b00020", faint = "#c4c4cc", paper = "#ffffff", band = "#f4f4f8",
                           empty = "#ececf0";

/// Sizes for a given walk-through.
struct measures {
  double cell_width = 0, cell_height = 0; ///< For sums: of one contribution.
  double pitch = 0;                       ///< Distance between two ranks.
  bool cell_labels = false;

  static measures of(const walk_through& story) {
    size_t cells = 1, letters = 1;
    for (const auto& round : story.rounds) {
      for (const auto& rank : round.after)
        cells = std::max({cells, rank.output.size(), rank.scratch.size()});
      for (const auto& x : round.activities)
        letters = std::max(letters, label_of(story, x.contents).size() + (x.source == x.destination ? 5 : 0));
    }
    measures m;
    auto count = static_cast<double>(cells);
    if (story.shows_sums()) {
      m.cell_height = story.world_size <= 4 ? 14 : story.world_size <= 8 ? 10 : 6;
      m.cell_width = std::clamp(72 / count, std::min(m.cell_height, 400 / count), 40.0);
    } else {
      m.cell_labels = cells <= 10;
      m.cell_height = 20;
      auto widest = story.coloured_by_block() || story.blocks == 1 ? 2 : 4;
      m.cell_width = m.cell_labels ? std::clamp(72 / count, letter_width * widest + 4, 40.0)
                                   : std::max(4.0, 150 / count);
    }
    auto chip = letter_width * static_cast<double>(letters) + 10;
    m.pitch = std::max({m.cell_width * count + 28, chip + 46, 88.0,
                        (width_min - left_margin - right_margin) / story.world_size});
    return m;
  }
};

class walk_painter {
public:
  walk_painter(const walk_through& story, std::string_view formula)
    : story_(story), formula_(formula), fault_(story.fault ? "fault: " + render(story.fault) : ""),
      m_(measures::of(story)) {
    write_title();
  }

  std::string paint() {
    std::vector<rank_holdings> now;
    for (const auto& cells : story_.inputs)
      now.push_back({cells, {}});
    if (story_.kind != proto::BARRIER)
      paint_band("input", {}, now, {});
    inputs_done_ = true;
    std::vector<rank_holdings> before;
    for (size_t i = 0; i < story_.rounds.size(); ++i) {
      paint_band(fmt::format("round {}", i), story_.rounds[i], story_.rounds[i].after, before);
      before = story_.rounds[i].after;
    }
    if (!fault_.empty()) {
      canvas_.text(gap, y_ + 2 * gap, letter_size, fault_, anchor::start, fault_colour, true);
      y_ += 2 * gap;
    }
    return canvas_.finish(width(), y_ + gap);
  }

private:
  double width() const {
    return std::max({left_margin + m_.pitch * story_.world_size + right_margin, width_min,
                     letter_width * static_cast<double>(formula_.size()) + 2 * gap,
                     fault_.empty() ? 0 : letter_width * static_cast<double>(fault_.size() + 1) + 2 * gap});
  }
  double x_of(uint32_t rank) const { return left_margin + m_.pitch * (rank + 0.5); }

  std::string colour_of(const content& x) const {
    if (x.block == content::nothing)
      return std::string{empty};
    if (story_.coloured_by_block())
      return distinct_colour(x.block, story_.blocks);
    uint32_t rank = 0;
    while ((x.ranks >> rank & 1) == 0)
      ++rank;
    return distinct_colour(rank, story_.world_size);
  }

  void write_title() {
    auto title = fmt::format("{}: {}, {} ranks{}", name_of(story_.kind), story_.algorithm, story_.world_size,
                             hosts_text(story_));
    canvas_.text(gap, 22, 20, title, anchor::start, svg_canvas::ink, true);
    canvas_.text(gap, 44, letter_size, formula_, anchor::start, svg_canvas::ink, false);
    auto squares
      = story_.kind == proto::BARRIER
          ? "Below the arrows, of whom each rank knows that they have come, a row for each rank."
        : story_.shows_sums()
          ? "Below the arrows, what each rank has: a column a block, with a row for each rank whose input is in it."
          : "Below the arrows, what each rank has, block by block.";
    canvas_.text(gap, 62, letter_size, squares, anchor::start, svg_canvas::ink, false);
    auto changes = reduces(story_.kind)
                     ? "Framed: new in this round. A circle with a plus: the receiver adds what it has."
                     : "Framed: new in this round.";
    canvas_.text(gap, 80, letter_size, changes, anchor::start, svg_canvas::ink, false);
    y_ = title_height;
  }

  /// A round: the ranks, its arrows, and the data of each rank after it.
  void paint_band(const std::string& name, const drawn_round& round, const std::vector<rank_holdings>& now,
                  const std::vector<rank_holdings>& before) {
    auto plan = lanes_of(round);
    auto arrows = y_ + gap + 2 * rank_radius + 6;
    auto cells = arrows + lane_height * plan.count + 6;
    auto end = cells + holdings_height(now) + gap;
    canvas_.rectangle(0, y_, width(), end - y_, bands_++ % 2 == 0 ? band : paper, {}, 0);
    canvas_.text(gap, y_ + gap + rank_radius, 15, name, anchor::start, svg_canvas::ink, true);
    paint_host_bounds(end);
    for (uint32_t rank = 0; rank < story_.world_size; ++rank) {
      canvas_.line(x_of(rank), y_ + gap + 2 * rank_radius, x_of(rank), cells - 4, {faint, 1.2});
      canvas_.circle(x_of(rank), y_ + gap + rank_radius, rank_radius, paper, {svg_canvas::ink, 1.4});
      canvas_.text(x_of(rank), y_ + gap + rank_radius, 13, fmt::to_string(rank), anchor::middle, svg_canvas::ink, true);
    }
    for (auto lane : plan.chain_starts)
      canvas_.text(left_margin - gap, arrows + lane_height * (lane + 0.5), letter_size, "then", anchor::end,
                   svg_canvas::ink, false);
    for (size_t i = 0; i < round.activities.size(); ++i)
      paint_activity(round.activities[i], arrows + lane_height * (plan.lanes[i] + 0.5));
    for (uint32_t rank = 0; rank < story_.world_size; ++rank)
      paint_holdings(rank, cells, now[rank], before.empty() ? nullptr : &before[rank]);
    y_ = end;
  }

  /// Lines between ranks of different hosts: arrows that cross one go between hosts.
  void paint_host_bounds(double end) {
    for (uint32_t rank = 1; rank < story_.hosts.size(); ++rank)
      if (story_.hosts[rank] != story_.hosts[rank - 1])
        canvas_.line(x_of(rank) - m_.pitch / 2, y_, x_of(rank) - m_.pitch / 2, end, {faint, 4});
  }

  void paint_activity(const drawn_activity& x, double y) {
    auto label = label_of(story_, x.contents);
    auto colour = x.contents.empty() ? std::string{faint} : colour_of(x.contents.front());
    if (x.source == x.destination)
      return paint_chip(x_of(x.source), y, (x.what == action::copy ? "copy " : "add ") + label, colour);
    auto direction = x.source < x.destination ? 1 : -1;
    auto start = x_of(x.source), end = x_of(x.destination);
    auto adds = x.what == action::recv_reduce;
    constexpr double plus_radius = 7;
    auto point = end - direction * (adds ? 2 * plus_radius + 3 : 2);
    canvas_.line(start, y, point - direction * 6, y, {colour, 2.4});
    canvas_.circle(start, y, 3.6, colour, {});
    canvas_.arrowhead(point, y, direction, colour);
    if (adds) {
      auto centre = end - direction * (plus_radius + 2);
      canvas_.circle(centre, y, plus_radius, paper, {colour, 2});
      canvas_.line(centre - 4, y, centre + 4, y, {svg_canvas::ink, 1.8});
      canvas_.line(centre, y - 4, centre, y + 4, {svg_canvas::ink, 1.8});
    }
    paint_chip(start + direction * (m_.pitch / 2 - 5), y, label, colour); // before the arrow crosses a line
  }

  void paint_chip(double x, double y, const std::string& label, std::string_view colour) {
    auto chip = letter_width * static_cast<double>(label.size()) + 10;
    canvas_.rectangle(x - chip / 2, y - chip_height / 2, chip, chip_height, colour, {paper, 1.2}, 5);
    canvas_.text(x, y, letter_size, label, anchor::middle, text_colour_on(colour), true);
  }

  double block_height() const { return m_.cell_height * (story_.shows_sums() ? story_.world_size : 1); }

  double holdings_height(const std::vector<rank_holdings>& now) const {
    double height = 0;
    for (const auto& x : now)
      height = std::max(height,
                        (x.output.empty() ? 0 : block_height()) + (x.scratch.empty() ? 0 : block_height() + 16));
    return height;
  }

  void paint_holdings(uint32_t rank, double y, const rank_holdings& now, const rank_holdings* before) {
    paint_cells(rank, y, now.output, before != nullptr ? &before->output : nullptr);
    if (now.scratch.empty())
      return;
    y += (now.output.empty() ? 0 : block_height()) + 9;
    canvas_.text(x_of(rank), y, 9, "scratch", anchor::middle, svg_canvas::ink, false);
    paint_cells(rank, y + 7, now.scratch, before != nullptr ? &before->scratch : nullptr);
  }

  void paint_cells(uint32_t rank, double y, const std::vector<content>& now, const std::vector<content>* before) {
    auto x = x_of(rank) - m_.cell_width * static_cast<double>(now.size()) / 2;
    for (size_t i = 0; i < now.size(); ++i) {
      auto left = x + m_.cell_width * static_cast<double>(i);
      story_.shows_sums() ? paint_sum(left, y, now[i]) : paint_cell(left, y, now[i]);
    }
    auto changed = [&](size_t i) {
      return now[i] != (before != nullptr ? (*before)[i] : inputs_done_ ? content{} : now[i]);
    };
    for (size_t i = 0; i < now.size(); ++i) { // on top of all cells, one frame around neighbours
      auto first = i;
      while (i < now.size() && changed(i))
        ++i;
      if (i != first)
        canvas_.rectangle(x + m_.cell_width * static_cast<double>(first), y,
                          m_.cell_width * static_cast<double>(i - first), block_height(), "none", {svg_canvas::ink, 2},
                          1);
    }
  }

  void paint_sum(double x, double y, const content& sum) {
    for (uint32_t rank = 0; rank < story_.world_size; ++rank) {
      auto has = sum.block != content::nothing && (sum.ranks >> rank & 1) != 0;
      canvas_.rectangle(x, y + m_.cell_height * rank, m_.cell_width, m_.cell_height, has ? colour_of(sum) : empty,
                        {paper, story_.is_whole(sum) ? 0
                                : m_.cell_height < 8 ? 0.4
                                                     : 0.8},
                        0);
    }
  }

  void paint_cell(double x, double y, const content& now) {
    auto colour = colour_of(now);
    canvas_.rectangle(x, y, m_.cell_width, m_.cell_height, colour, {paper, 1}, 2);
    if (m_.cell_labels && now.block != content::nothing)
      canvas_.text(x + m_.cell_width / 2, y + m_.cell_height / 2, 10, label_of(story_, {now}), anchor::middle,
                   text_colour_on(colour), false);
  }

  const walk_through& story_;
  std::string_view formula_;
  std::string fault_; ///< "fault: ...", or empty.
  measures m_;
  svg_canvas canvas_;
  double y_ = 0;
  uint32_t bands_ = 0;
  bool inputs_done_ = false; ///< The inputs are drawn and not framed as new.
};

} // namespace

std::string svg_of(const walk_through& story, std::string_view formula) {
  return walk_painter{story, formula}.paint();
}

} // namespace ringmaster
