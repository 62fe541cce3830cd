#pragma once

#include <cstdint>
#include <string_view>

namespace ringmaster {

/// What is to listen at an address that this process connects to. Each has settings of its own that say where. The
/// numbers travel.
enum class listener_kind : uint8_t { coordinator, node, bulk_link };

/// "coordinator", "node", "bulk connection"
std::string_view name_of(listener_kind kind);

} // namespace ringmaster
