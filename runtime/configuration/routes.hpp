#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace ringmaster {

/// A way in which blocks travel, as `route.use` names it, and what is so of it. How it is gone is the row of the same
/// place in actors/streams/route.cpp.
struct route_facts {
  std::string_view name;
  bool maps_memory = false; ///< Processes of a host read each other's memory by it.
  bool has_links = false;   ///< Processes make bulk connections for it.
  bool in_place = false;    ///< Within a process the receiver reads the sender's memory.
};

/// From the shortest to the one that goes everywhere.
inline constexpr std::array<route_facts, 3> route_table{{
  {.name = "memory", .maps_memory = true, .in_place = true},
  {.name = "link", .has_links = true, .in_place = true},
  {.name = "messages"},
}};

/// `use`: a route's name, or "auto" for the shortest that there is. Whether blocks may go by one of which that is so.
inline bool may_go(std::string_view use, bool route_facts::*fact) {
  return std::ranges::any_of(route_table, [=](auto& x) { return (use == "auto" || use == x.name) && x.*fact; });
}

/// Whether they may go by no other.
inline bool must_go(std::string_view use, bool route_facts::*fact) {
  return use != "auto" && may_go(use, fact);
}

} // namespace ringmaster
