#pragma once

#include "runtime/trust/certificates.hpp"

#include <caf/expected.hpp>

#include <memory>
#include <string>

struct ssl_ctx_st; // OpenSSL's SSL_CTX

namespace ringmaster {

/// What a process needs for TLS: its certificate, its key, and the authority that has signed the certificates of all.
/// Immutable, and thread-safe.
class tls_identity {
public:
  /// PEM files, or such texts themselves; intermediate certificates may follow that of the process.
  struct files {
    std::string certificate = {}, key = {}, authority = {};
  };

  /// Reads them, once: a process uses what was there when it started. Errors: io_error, where one is missing or cannot
  /// be read; invalid_argument, where one has no certificate or key, where others may read the key, where the three do
  /// not belong together, or where the certificate is not valid at present, or its role does not exist.
  static caf::expected<std::shared_ptr<const tls_identity>> read(const files& from);
  /// Of texts. `origin`: of the certificate, for errors: "host.pem".
  static caf::expected<std::shared_ptr<const tls_identity>> of(const certified_key& own, const std::string& authority,
                                                               const std::string& origin);

  /// The same, without a look at the time and the authority: as one of a process that started long ago.
  static caf::expected<std::shared_ptr<const tls_identity>> unchecked(
    const certified_key& own, const std::string& authority, const std::string& origin);

  ~tls_identity();
  tls_identity(const tls_identity&) = delete;
  tls_identity& operator=(const tls_identity&) = delete;

  ssl_ctx_st* context() const { return context_; }
  const certificate_subject& subject() const { return subject_; }
  /// One by which others may connect; empty: the certificate has none.
  std::string host() const { return subject_.hosts.empty() ? std::string{} : subject_.hosts.front(); }
  const std::string& origin() const { return origin_; }

private:
  explicit tls_identity(std::string origin);
  caf::error check() const;

  ssl_ctx_st* context_;
  std::string origin_;
  certificate_subject subject_;
};

using tls_identity_ptr = std::shared_ptr<const tls_identity>;

} // namespace ringmaster
