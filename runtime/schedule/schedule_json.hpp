#pragma once

#include "runtime/schedule/collective.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// A collective and the schedules of all its ranks: what a schedule file says. docs/schedule_format.md has the format.
struct schedule_set {
  proto::CollectiveKind kind = proto::ALL_REDUCE;
  plan_request request; ///< The rank does not matter.
  std::vector<schedule> ranks;
};

/// As JSON, one step a line.
std::string to_json(const schedule_set& all);

/// Reads what `to_json` writes, and what people write by hand: any JSON with these keys. Whether the schedules are
/// right is for `prove` to say. Errors: invalid_argument, naming the place (line, column, rank, step, key) and what may
/// stand there.
caf::expected<schedule_set> parse_schedules(std::string_view json);

} // namespace ringmaster
