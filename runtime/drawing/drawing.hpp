#pragma once

#include "runtime/drawing/walk_through.hpp"

namespace ringmaster {

/// A schedule as a picture, SVG. Ranks stand side by side and rounds below each other: in each round, first who sends
/// what to whom, an arrow a message, then what every rank has. Colours are those of the blocks, or of the ranks that
/// the data comes from where each rank has its own. Of a sum a small square shows, block by block from left to right,
/// which ranks' inputs are in it, rank by rank from the top.
std::string svg_of(const walk_through& story, std::string_view formula);

/// The same for a terminal.
std::string text_of(const walk_through& story, std::string_view formula);

} // namespace ringmaster
