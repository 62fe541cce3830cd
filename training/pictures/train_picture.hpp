#pragma once

#include "training/pictures/train_run.hpp"
#include "training/simulated/simulator.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>

namespace ringmaster {

inline constexpr uint32_t pictured_ranks_max = 32;
inline constexpr size_t pictured_boxes_max = 20'000;

/// The schedule as an SVG picture in the form used by papers: time goes to the right; each rank has a row of boxes, a
/// thin row below it for its second stream if it uses one, and its memory, on the same scale for all ranks. With more
/// than 20000 boxes each pixel shows the kind with most of its time. Requires an outcome with events. Errors:
/// invalid_argument for more than 32 ranks.
caf::expected<std::string> picture_of(const train_run& x, const training::training_outcome& found);

} // namespace ringmaster
