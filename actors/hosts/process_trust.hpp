#pragma once

#include "actors/trust/peer_directory.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/trust/credentials.hpp"
#include "runtime/trust/listener_kind.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

namespace ringmaster {

/// What the configuration says of trust.
struct trust_settings {
  std::string secret_file = {}; ///< Empty: not configured.
  tls_identity::files tls = {}; ///< Without a certificate: not configured.
  protection bulk = protection::encrypted;
  bool insecure = true;
  std::string journal_dir = {}; ///< Of a coordinator; empty: none.
  bool lists_nodes = false;     ///< The coordinator connects to nodes that do not know it yet.
  bool port_is_chosen = false;  ///< The coordinator's port is one that is free, so its secret is of no use later.
};

/// A configuration of an actor system that has them.
class trust_source {
public:
  virtual ~trust_source() = default;
  virtual trust_settings trust() const = 0;
};

/// The credentials of a process, one of an actor system. Thread-safe. In this order:
///
///   trust.insecure          none
///   trust.secret-file       that file
///   RINGMASTER_SECRET       in the environment: the secret itself (`shared_secret::text`)
///   RINGMASTER_SECRET_FILE  in the environment: a file
///   else, a coordinator     the file `secret` in its journal's directory; without one, its file in the user's
///                           `secret_directory`. Both are made where they are missing
///   else, others            the file of the coordinator's port in the user's `secret_directory`; a node that waits for
///                           a coordinator makes one for such nodes there
///
/// Certificates are those of trust.certificate, or of RINGMASTER_CERTIFICATE. With them a secret is proved only if one
/// is configured by the second, third or fourth line.
/// Each may have the secret of a role (role_secret.hpp) in place of the cluster's. A process that has only that
/// connects, and others can connect to it only as nodes of the same role.
///
/// A coordinator stores its secret there by its port in any case, so that other commands of its user find it.
class process_trust {
public:
  explicit process_trust(trust_settings settings) : settings_(std::move(settings)) {}
  /// Removes the file that it has stored by the port, if it is of no use later.
  ~process_trust();
  process_trust(const process_trust&) = delete;
  process_trust& operator=(const process_trust&) = delete;

  /// That of the system; one that is insecure if its configuration is no `trust_source`.
  static process_trust& of(caf::actor_system& system);

  /// For a port at which this process listens. It is bound, and no connection is accepted yet. Errors: as of
  /// shared_secret and secret_directory.
  caf::expected<credentials_ptr> for_listening(listener_kind as, uint16_t port);
  /// For a connection that this process makes; asked when the other end listens. Errors: as above, with what to do.
  caf::expected<credentials_ptr> for_connecting(const endpoint& there, listener_kind whom);
  /// "TLS 1.3"; empty: connections are not encrypted.
  std::string encryption();

  /// What the configuration or the environment names. Null: nothing. Errors: as of shared_secret, invalid_config.
  caf::expected<credentials_ptr> configured();
  /// Who is connected to this process by CAF's protocol.
  peer_directory& peers() { return peers_; }

private:
  caf::expected<credentials_ptr> configured_secret() const;
  /// Null where there is no certificate. Errors: invalid_config.
  caf::expected<tls_identity_ptr> certified();
  caf::expected<credentials_ptr> of_coordinator(uint16_t port);
  caf::expected<credentials_ptr> of_waiting_nodes();
  /// Has processes of this user and host find the secret by the port, in place of one of an earlier coordinator there.
  void publish(uint16_t port, const shared_secret& secret, bool until_end);
  credentials_ptr as_coordinator(credentials_ptr own) const;
  credentials_ptr keep(shared_secret secret, const std::filesystem::path& file);

  const trust_settings settings_;
  peer_directory peers_;
  std::atomic<bool> is_coordinator_ = false; ///< It listens as one.
  std::mutex mutex_;
  tls_identity_ptr certified_;      ///< Once it was read.
  credentials_ptr of_cluster_;      ///< That this process is a part of, once it is known.
  std::filesystem::path to_remove_; ///< If it still has that secret.
};

} // namespace ringmaster
