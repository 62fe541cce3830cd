#pragma once

#include "gateway/http/state/cluster_source.hpp"

#include <cstdint>
#include <string>

namespace ringmaster::gateway {

constexpr uint64_t trace_records_max = 200'000;
constexpr uint64_t trace_bytes_max = 64 * 1024 * 1024;

/// The latest `last` records as a trace for Perfetto, of trace_bytes_max at most. Errors: those of the source.
caf::expected<std::string> trace_of_journal(cluster_source& source, uint64_t last);

} // namespace ringmaster::gateway
