#pragma once

#include "training/simulated/cost_model.hpp"
#include "training/simulated/simulator.hpp"

#include <ringmaster/strategy/group.hpp>

#include <caf/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace ringmaster {

/// The simulated run in reports and pictures.
struct train_run {
  std::string_view strategy;
  training::model trained;
  uint32_t ranks = 0;
  const training::cost_model* costs = nullptr;
  uint32_t layers = 0;     ///< The model's layers, if trained.layers counts places that differ; 0: the same number.
  bool uncut = false;      ///< A rank processes all of its samples at once without being asked to; JSON has 1.
  std::string title{};     ///< The picture's title, instead of strategy, ranks and layers.
  std::string_view note{}; ///< About the picture's ranks.
  std::string_view row = "rank"; ///< The name of each rank in a picture.

  uint32_t model_layers() const { return layers != 0 ? layers : trained.layers; }
};

inline constexpr uint32_t pictured_ranks_max = 32;
inline constexpr size_t pictured_boxes_max = 20'000;

/// The schedule as an SVG picture in the form used by papers: time goes to the right; each rank has a row of boxes, a
/// thin row below it for its second stream if it uses one, and its memory, on the same scale for all ranks. With more
/// than 20000 boxes each pixel shows the kind with most of its time. Requires an outcome with events. Errors:
/// invalid_argument for more than 32 ranks.
caf::expected<std::string> picture_of(const train_run& x, const training::training_outcome& found);

/// The outcome with only the first rank of each stage, renumbered 0, 1, ...: the other ranks of a stage do the same
/// with other columns or samples. Sums over all ranks stay the same.
training::training_outcome first_of_stages(const training::training_outcome& found, const training::mesh& shape);

} // namespace ringmaster
