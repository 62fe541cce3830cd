#pragma once

#include "training/simulated/cost_model.hpp"

#include <caf/expected.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// A cost model that --cost-model names.
struct known_cost_model {
  std::string_view name;
  std::string_view what; ///< For help.
  /// A laboratory's, the same whatever is trained; nullptr: it is made of a transformer, whose options go with it.
  const training::cost_model& (*laboratory)() = nullptr;
  bool of_this_machine = false; ///< So no other system can be named.
  bool planned = true;          ///< `ringmaster plan` knows how to search under it.
};

/// In the order in which they are listed to people.
std::span<const known_cost_model> known_cost_models();
std::vector<std::string> cost_model_names(bool planned_only);

/// Errors: invalid_argument, naming those that there are.
caf::expected<const known_cost_model*> parse_cost_model(const std::string& text);
/// The same of those that `ringmaster plan` takes.
caf::expected<const known_cost_model*> parse_planned_cost_model(const std::string& text);

} // namespace ringmaster
