#pragma once

#include "training/simulated/cost_model.hpp"

#include <string>
#include <string_view>

namespace ringmaster {

/// What was simulated, as reports and pictures name it.
struct train_run {
  std::string_view strategy;
  training::model trained;
  uint32_t ranks = 0;
  const training::cost_model* costs = nullptr;
  uint32_t layers = 0;     ///< The model's, where trained.layers has several places for one, or others; 0: as many.
  bool uncut = false;      ///< A rank works on all of its samples at once, and nobody has said so; JSON has 1 then.
  std::string title{};     ///< Of a picture, in place of strategy, ranks and layers.
  std::string_view note{}; ///< Of a picture's ranks.
  std::string_view row = "rank"; ///< What a picture calls each of the ranks.

  uint32_t model_layers() const { return layers != 0 ? layers : trained.layers; }
};

} // namespace ringmaster
