#pragma once

#include "messages/errc.hpp"
#include "runtime/trust/certificates.hpp"
#include "runtime/trust/tls_identity.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ringmaster::test {

inline certificate_period valid_now() {
  return certificate_period::starting(std::chrono::system_clock::now(), std::chrono::days{1});
}

inline certificate_period expired() {
  const auto now = std::chrono::system_clock::now();
  return {now - std::chrono::days{2}, now - std::chrono::days{1}};
}

/// An authority and the certificates that it makes, in memory or in files.
class trust_authority {
public:
  explicit trust_authority(const std::string& name = "a-test-s-authority")
    : own_(std::move(*make_authority(name, valid_now()))) {}

  const certified_key& own() const { return own_; }

  certified_key certify(const certificate_subject& whom, const certificate_period& period = valid_now()) const {
    auto result = issue(own_, whom, period);
    REQUIRE_MESSAGE(result, render(result.error()));
    return std::move(*result);
  }

  tls_identity_ptr identity(const certificate_subject& whom) const {
    auto result = tls_identity::of(certify(whom), own_.certificate, whom.name);
    REQUIRE_MESSAGE(result, render(result.error()));
    return std::move(*result);
  }

  /// Writes NAME.pem, NAME.key and the authority of `trusted`, by default this one.
  tls_identity::files write(const std::filesystem::path& dir, const std::string& name, const certified_key& what,
                            const trust_authority* trusted = nullptr) const {
    const tls_identity::files result{(dir / (name + ".pem")).string(), (dir / (name + ".key")).string(),
                                     (dir / (name + ".authority.pem")).string()};
    std::ofstream{result.certificate} << what.certificate;
    std::ofstream{result.key} << what.key;
    std::filesystem::permissions(result.key, std::filesystem::perms::owner_read);
    std::ofstream{result.authority} << (trusted == nullptr ? own_ : trusted->own_).certificate;
    return result;
  }

private:
  certified_key own_;
};

/// A host on loopback.
inline certificate_subject loopback_host(const std::string& name = "host-a") {
  return {name, role::member, {name, "localhost", "127.0.0.1", "::1"}};
}

} // namespace ringmaster::test
