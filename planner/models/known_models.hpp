#pragma once

#include "planner/models/language_model.hpp"

#include <caf/expected.hpp>

#include <span>
#include <string_view>

namespace ringmaster::training {

/// The built-in models; known_models.cpp names their sources.
std::span<const language_model> known_models();
/// Errors: invalid_argument, with the names of all models.
caf::expected<language_model> model_of(std::string_view name);

} // namespace ringmaster::training
