#pragma once

#include "runtime/text/json_field.hpp"

#include <caf/expected.hpp>

#include <string>
#include <string_view>

namespace ringmaster::training {

/// The number of a member of a system's file; a text may have a unit. Errors: invalid_argument, with what is expected.
caf::expected<double> system_member_of(const std::string& name, const json_value& value);

/// Whether a member can have this number. The limits are orders of magnitude beyond any hardware, and keep times
/// finite. Errors: invalid_argument, with the member, its number and what it must be.
caf::error problem_of_member(std::string_view name, double x);

} // namespace ringmaster::training
