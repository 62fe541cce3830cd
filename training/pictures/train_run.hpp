#pragma once

#include "training/simulated/cost_model.hpp"

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

} // namespace ringmaster
