#pragma once

#include "tools/simulated_training/strategy_options.hpp"
#include "tools/simulated_training/transformer_options.hpp"
#include "training/pictures/train_trace.hpp"

#include <memory>
#include <optional>
#include <string>

namespace ringmaster {

/// The options of `ringmaster simulate train`. Must not move once it has been added to a table; may be copied then.
struct train_options : strategy_options {
  const known_cost_model* cost_kind = &known_cost_models().front();
  const training::cost_model* costs = nullptr;
  std::shared_ptr<const training::cost_model> own_costs;
  std::optional<uint32_t> layers;
  uint32_t places_beside
    = 0; ///< Of trained.layers, those beside the model's: for networks apart, the embedding, the logits, or nothing.
  transformer_options transformer;
  bool json = false;
  bool wide = false; ///< The table of all strategies shows all of its columns.
  std::string trace;
  std::optional<uint64_t> trace_bytes_max;
  std::string svg;

  void add_to(option_table& table);
  /// Whether they go together, and, but for all strategies, `check_one`. Errors: invalid_argument.
  caf::error check();
  /// Sets the strategy's defaults and the cost model, and checks them. Errors: invalid_argument.
  caf::error check_one();
};

} // namespace ringmaster
