#pragma once

#include "runtime/drawing/walk_through.hpp"

namespace ringmaster {

/// A schedule as an SVG picture. Ranks are columns and rounds are rows. Each round has an arrow for each message, then
/// the data that each rank has. A color stands for a block, or for the rank that the data comes from if each rank has
/// its own. A sum has a column of squares for each block: a filled square for each rank whose input it contains, from
/// the top.
std::string svg_of(const walk_through& story, std::string_view formula);

/// The same as text for a terminal.
std::string text_of(const walk_through& story, std::string_view formula);

} // namespace ringmaster
