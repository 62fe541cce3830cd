#pragma once

#include "gateway/http/state/json.hpp"

#include <optional>

namespace ringmaster::gateway {

/// The fields of `Delta` in openapi.json that turn the status `from` into `to`, except version and base. None: they say
/// the same, apart from their time.
std::optional<json> status_changes(const json& from, const json& to);

} // namespace ringmaster::gateway
