#pragma once

#include "runtime/trust/secret.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ringmaster {

/// Who is at the other end of an authenticated connection. It follows from what the other end has proved, never from
/// what it claims.
struct peer_identity {
  /// What it may do. One secret is one role.
  enum class role : uint8_t {
    stranger, ///< It has proved nothing: `trust.insecure`.
    member    ///< A process of the cluster, which may do everything.
  };

  role as = role::stranger;
  std::string name; ///< Of the secret: its file, or the variable that has it. Empty for a stranger.
};

/// What a process proves its membership by, and wants proved. Immutable.
struct credentials {
  std::optional<shared_secret> secret; ///< None: nothing is proved at either end.
  std::string origin;                  ///< Where the secret is from, for people: "the secret file /etc/secret".

  /// Whom the secret stands for.
  peer_identity identity() const {
    return secret ? peer_identity{peer_identity::role::member, origin} : peer_identity{};
  }
};

using credentials_ptr = std::shared_ptr<const credentials>;

/// Those of `trust.insecure`.
inline credentials_ptr no_credentials() {
  static const auto result = std::make_shared<const credentials>();
  return result;
}

} // namespace ringmaster
