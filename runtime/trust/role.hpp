#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringmaster {

/// What a process of a cluster may do (docs/TRUST.md has the table). The numbers travel.
enum class role : uint8_t {
  stranger = 0, ///< It has proved nothing: `trust.insecure`.
  member = 1,   ///< It knows the cluster's secret: everything.
  coordinator = 2,
  node = 3,      ///< It brings devices.
  rank = 4,      ///< One rank of a job, with a device of its own.
  client = 5,    ///< It makes communicators, and uses those that it made.
  operating = 6, ///< "operator": a client that also kills, drains and destroys what others have made.
  observer = 7   ///< It sees status and info.
};

/// "node", "operator"
std::string_view name_of(role x);
/// Of a name of these. None: there is no such role, or none that can be given away (stranger, member).
std::optional<role> parse_role(std::string_view name);

} // namespace ringmaster
