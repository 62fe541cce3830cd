#pragma once

#include "runtime/trust/role.hpp"
#include "runtime/trust/secret.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster {

/// The longest name of a role's secret: the greeting has this many bytes for it.
constexpr size_t secret_name_bytes_max = 32;

/// A secret with what it stands for: that of the cluster, for `role::member`, or one that was derived from it for
/// another role, which does not reveal it.
struct role_secret {
  role as = role::member;
  std::string name; ///< Of the person or program that it was made for; empty: none.
  shared_secret secret;

  /// One line, for a file or an environment variable: "observer:" or "observer/alice:" and two hexadecimal digits a
  /// byte; of the cluster's own, `shared_secret::text`.
  std::string text() const;
};

/// The secret of a role: HMAC-SHA-256 with the cluster's secret over "ringmaster role 1: ROLE\nNAME\n".
shared_secret derive_secret(const shared_secret& of_cluster, role as, std::string_view name);

/// Errors: invalid_argument, for a name that a secret of this role cannot have: with other characters than letters,
/// digits, '.', '_' and '-', too long, or of a node or a rank, which check each other by one secret.
caf::error check_secret_name(role as, std::string_view name);

/// What a file or an environment variable has: the text of a role's secret, or else the cluster's. `whose` names it.
/// Errors: invalid_argument.
caf::expected<role_secret> role_secret_of(const shared_secret& stored, const std::string& whose);

} // namespace ringmaster
