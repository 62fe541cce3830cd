#pragma once

#include "runtime/trust/listener_kind.hpp"
#include "runtime/trust/role.hpp"
#include "runtime/trust/secret.hpp"
#include "runtime/trust/tls_identity.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ringmaster {

/// Who is at the other end of an authenticated connection. It follows from what the other end has proved, never from
/// what it claims.
struct peer_identity {
  role as = role::stranger; ///< What it may do.
  std::string name;         ///< In its certificate; else of the secret: its file, or the variable that has it.
};

/// What is done with the bytes of a connection. The numbers travel.
enum class protection : uint8_t {
  none = 0,
  encrypted = 1,    ///< By TLS 1.3.
  authenticated = 2 ///< They can be read, and not changed, after a handshake of TLS 1.3. For bulk connections.
};

/// What a process proves its membership by, and wants proved. Immutable. With both, both are proved.
struct credentials {
  std::optional<shared_secret> secret;        ///< None: no secret is proved at either end.
  std::string origin;                         ///< Where the secret is from, for people: "the secret file /etc/secret".
  tls_identity_ptr tls = {};                  ///< Null: connections are not encrypted.
  protection of_bulk = protection::encrypted; ///< With `tls`.

  protection protects(listener_kind kind) const {
    if (tls == nullptr)
      return protection::none;
    return kind == listener_kind::bulk_link ? of_bulk : protection::encrypted;
  }
  /// Whom the secret stands for.
  peer_identity identity() const { return secret ? peer_identity{role::member, origin} : peer_identity{}; }
};

using credentials_ptr = std::shared_ptr<const credentials>;

/// Those of `trust.insecure`.
inline credentials_ptr no_credentials() {
  static const auto result = std::make_shared<const credentials>();
  return result;
}

} // namespace ringmaster
