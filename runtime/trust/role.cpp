#include "runtime/trust/role.hpp"

#include <algorithm>
#include <iterator>

namespace ringmaster {

namespace {

constexpr std::string_view role_names[] = {"stranger", "member", "coordinator", "node",
                                           "rank",     "client", "operator",    "observer"};

} // namespace

std::string_view name_of(role x) {
  return role_names[static_cast<size_t>(x)];
}

std::optional<role> parse_role(std::string_view name) {
  const auto* first_given = std::begin(role_names) + static_cast<size_t>(role::coordinator);
  const auto* found = std::find(first_given, std::end(role_names), name);
  if (found == std::end(role_names))
    return std::nullopt;
  return static_cast<role>(found - std::begin(role_names));
}

} // namespace ringmaster
