#pragma once

#include "tools/options/option_table.hpp"

#include <cstdint>
#include <optional>

namespace ringmaster {

/// A smaller trace has room for a few records only.
inline constexpr uint64_t trace_limit_min = 64 << 10;

/// --trace-limit SIZE, the largest size of the file that --trace writes.
inline option& add_trace_limit(option_table& table, std::optional<uint64_t>& target) {
  return table.bytes("--trace-limit", target, UINT64_MAX, trace_limit_min);
}

} // namespace ringmaster
