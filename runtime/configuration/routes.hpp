#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace ringmaster {

/// A way in which blocks travel, with its name in `route.use` and its properties. The row with the same index in
/// actors/streams/route.cpp implements it.
struct route_facts {
  std::string_view name;
  bool maps_memory = false; ///< Processes of a host read each other's memory.
  bool has_links = false;   ///< Needs bulk connections between processes.
  bool in_place = false;    ///< Within a process the receiver reads the sender's memory.
};

/// From the shortest to the one that is always available.
inline constexpr std::array<route_facts, 3> route_table{{
  {.name = "memory", .maps_memory = true, .in_place = true},
  {.name = "link", .has_links = true, .in_place = true},
  {.name = "messages"},
}};

/// Whether blocks may take a route with this property. `use`: a route's name, or "auto" for the shortest available one.
inline bool may_go(std::string_view use, bool route_facts::*fact) {
  return std::ranges::any_of(route_table, [=](auto& x) { return (use == "auto" || use == x.name) && x.*fact; });
}

/// Whether blocks may take no other route.
inline bool must_go(std::string_view use, bool route_facts::*fact) {
  return use != "auto" && may_go(use, fact);
}

} // namespace ringmaster
