#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ringmaster::training {

struct stroke_point {
  double x = 0, y = 0; ///< In a square of side 1, x to the right and y down.
};
using stroke = std::vector<stroke_point>;

/// How 0 to 9 are written, each in one stroke or two.
std::span<const stroke> strokes_of(uint32_t digit);

} // namespace ringmaster::training
