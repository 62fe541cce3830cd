#include "runtime/drawing/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

namespace ringmaster {

namespace {

constexpr size_t pattern_columns_max = 72;

/// The ranks whose inputs are in a sum: "01..4", or "3/16" if that is too wide; otherwise the cell's label.
std::string cell_text(const walk_through& story, const content& x, bool patterns) {
  if (!story.shows_sums())
    return x.block == content::nothing ? "." : label_of(story, {x});
  if (!patterns)
    return x.block == content::nothing ? "." : fmt::format("{}/{}", std::popcount(x.ranks), story.world_size);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (uint32_t rank = 0; rank < story.world_size; ++rank)
    text += (x.ranks >> rank & 1) != 0 ? digits[rank] : '.';
  return text;
}

class table {
public:
  explicit table(const walk_through& story) : story_(story) {
    size_t cells = 0;
    for (const auto& round : story.rounds)
      for (const auto& rank : round.after)
        cells = std::max(cells, rank.output.size() + rank.scratch.size());
    patterns_ = cells * (story.world_size + 1) <= pattern_columns_max;
    for (const auto& round : story.rounds)
      for (uint32_t rank = 0; rank < story.world_size; ++rank) {
        widest_ = std::max(widest_, activities_text(round, rank).size());
        for (const auto& x : round.after[rank].output)
          widest_cell_ = std::max(widest_cell_, cell_text(story_, x, patterns_).size());
        for (const auto& x : round.after[rank].scratch)
          widest_cell_ = std::max(widest_cell_, cell_text(story_, x, patterns_).size());
      }
  }

  std::string round_text(const drawn_round& round) const {
    std::string text;
    for (uint32_t rank = 0; rank < story_.world_size; ++rank) {
      const auto& holdings = round.after[rank];
      auto line = fmt::format("  {:>2}  {:<{}}  |{}", rank, activities_text(round, rank), widest_,
                              cells_text(holdings.output));
      if (!holdings.scratch.empty())
        line += fmt::format(" | scratch{}", cells_text(holdings.scratch));
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

private:
  /// "[3] -> 1; [2] <+ 7": blocks sent, received, and received and added; chains in their order.
  std::string activities_text(const drawn_round& round, uint32_t rank) const {
    enum side : int { alone, outwards, inwards };
    std::multimap<std::pair<uint32_t, side>, std::string> parts;
    for (const auto& x : round.activities) {
      auto label = label_of(story_, x.contents);
      if (x.source == rank && x.destination == rank)
        parts.insert({{x.order, alone}, fmt::format("{} [{}]", x.what == action::copy ? "copies" : "adds", label)});
      else if (x.source == rank)
        parts.insert({{x.order, outwards}, fmt::format("[{}] -> {}", label, x.destination)});
      else if (x.destination == rank)
        parts.insert({{x.order, inwards},
                      fmt::format("[{}] {} {}", label, x.what == action::recv ? "<-" : "<+", x.source)});
    }
    std::string text;
    for (const auto& [place, part] : parts)
      text += (text.empty() ? "" : "; ") + part;
    return text;
  }

  std::string cells_text(const std::vector<content>& cells) const {
    std::string text;
    for (const auto& x : cells)
      text += fmt::format(" {:<{}}", cell_text(story_, x, patterns_), widest_cell_);
    return text;
  }

  const walk_through& story_;
  bool patterns_ = false;
  size_t widest_ = 0, widest_cell_ = 1;
};

} // namespace

std::string text_of(const walk_through& story, std::string_view formula) {
  auto text = fmt::format("{}: {}, {} rank{}{}\n{}\n", name_of(story.kind), story.algorithm, story.world_size,
                          story.world_size == 1 ? "" : "s", hosts_text(story), formula);
  text += story.kind == proto::BARRIER
            ? "[S] -> R: rank R learns that the ranks S have arrived; [S] <- R: this comes from R.\n"
              "After the bar: the ranks that have arrived.\n"
          : story.shows_sums()
            ? "[B] -> R: block B goes to rank R; [B] <- R: block B comes from R; [B] <+ R: and is added to the local "
              "one.\n"
              "After the bar: for each block the ranks whose inputs are in it.\n"
            : "[B] -> R: block B goes to rank R; [B] <- R: it comes from R. After the bar: the blocks of the rank.\n";
  table rows{story};
  for (size_t i = 0; i < story.rounds.size(); ++i)
    text += fmt::format("\nround {}\n{}", i, rows.round_text(story.rounds[i]));
  return text;
}

} // namespace ringmaster
