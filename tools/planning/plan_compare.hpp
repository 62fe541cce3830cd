#pragma once

#include "planner/search/plan_outcome.hpp"
#include "tools/options/tool_command.hpp"

#include <caf/expected.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace ringmaster {

/// `ringmaster plan compare`.
tool_command plan_compare_command();

/// The best plan of a file that `ringmaster plan --json` wrote, of a transformer.
struct saved_plan {
  std::string title; ///< What was asked, and all that plans can differ in.
  double seconds = 0, bytes = 0, gpus = 0, tokens_a_second = 0;
  std::optional<double> simulated_seconds, simulated_bytes; ///< Nothing: it was not simulated.
  training::named_parts seconds_by_part, bytes_by_part;
};

/// From the file's text. Errors: invalid_argument, with line and column, the member, what it must be, and what it is;
/// also where parts do not add up to what they are parts of.
caf::expected<saved_plan> parse_saved_plan(std::string_view document);

/// Errors: corrupt, with the file and those; io_error.
caf::expected<saved_plan> read_saved_plan(const std::string& file);

} // namespace ringmaster
