#pragma once

#include "planner/models/language_model.hpp"

#include <caf/expected.hpp>

#include <span>
#include <string_view>

namespace ringmaster::training {

/// Those that have names, with their sources in known_models.cpp.
std::span<const language_model> known_models();
/// Errors: invalid_argument, naming those that there are.
caf::expected<language_model> model_of(std::string_view name);

} // namespace ringmaster::training
