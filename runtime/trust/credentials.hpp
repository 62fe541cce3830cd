#pragma once

#include "runtime/trust/listener_kind.hpp"
#include "runtime/trust/role.hpp"
#include "runtime/trust/role_secret.hpp"
#include "runtime/trust/secret.hpp"
#include "runtime/trust/tls_identity.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ringmaster {

/// Who is at the other end of an authenticated connection. It follows from what the other end has proved, never from
/// what it claims.
struct peer_identity {
  role as = role::stranger;
  std::string name = {}; ///< In its certificate or secret; empty: there is none.

  bool operator==(const peer_identity&) const = default;
};

/// "operator alice", "member"
std::string text_of(const peer_identity& who);

/// A process at the other end of a connection.
struct connected_peer {
  peer_identity who;
  std::string address = {}; ///< "10.0.0.3:49152"
  std::string process = {}; ///< Its id in CAF's protocol, as text.
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
  peer_identity own = {};                     ///< What the secret stands for.
  tls_identity_ptr tls = {};                  ///< Null: connections are not encrypted.
  protection of_bulk = protection::encrypted; ///< With `tls`.

  /// Of the cluster's own secret, or of one for a role.
  static std::shared_ptr<const credentials> of(role_secret secret, std::string origin) {
    return std::make_shared<const credentials>(
      credentials{std::move(secret.secret), std::move(origin), {secret.as, std::move(secret.name)}});
  }

  /// The same with the secret of a role in place of the cluster's.
  std::shared_ptr<const credentials> derived(role as) const {
    auto result = *this;
    result.own = {as, {}};
    result.secret = derive_secret(secret.value(), as, {});
    return std::make_shared<const credentials>(std::move(result));
  }

  protection protects(listener_kind kind) const {
    if (tls == nullptr)
      return protection::none;
    return kind == listener_kind::bulk_link ? of_bulk : protection::encrypted;
  }
};

using credentials_ptr = std::shared_ptr<const credentials>;

/// Those of `trust.insecure`.
inline credentials_ptr no_credentials() {
  static const auto result = std::make_shared<const credentials>();
  return result;
}

} // namespace ringmaster
