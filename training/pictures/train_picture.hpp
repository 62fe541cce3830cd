#pragma once

#include "training/pictures/train_run.hpp"
#include "training/simulated/simulator.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <string>

namespace ringmaster {

inline constexpr uint32_t pictured_ranks_max = 32;
inline constexpr size_t pictured_boxes_max = 20'000;

/// The schedule as a picture, SVG, as papers draw it: time goes to the right, and each rank has a row of boxes, a thin
/// one below it for its second stream if it uses that, and the memory that it holds, to one scale for all.
/// Of more than 20000 boxes each pixel shows what most of its time is for. Of an outcome with events. Errors:
/// invalid_argument for more than 32 ranks.
caf::expected<std::string> picture_of(const train_run& x, const training::training_outcome& found);

} // namespace ringmaster
