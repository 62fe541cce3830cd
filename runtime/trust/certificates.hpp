#pragma once

#include "runtime/trust/role.hpp"

#include <caf/expected.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace ringmaster {

/// A certificate and its private key (EC P-256), as PEM texts. The key is wiped from memory when it is destroyed.
struct certified_key {
  std::string certificate, key;

  certified_key() = default;
  certified_key(std::string of, std::string with) : certificate(std::move(of)), key(std::move(with)) {}
  certified_key(const certified_key&) = default;
  certified_key(certified_key&&) noexcept = default;
  certified_key& operator=(const certified_key&) = default;
  certified_key& operator=(certified_key&&) noexcept = default;
  ~certified_key();
};

/// Whom a certificate stands for.
struct certificate_subject {
  std::string name;               ///< The common name: of the host, or of a person or program.
  role as = role::member;         ///< The organizational unit, "OU=node"; a member has none.
  std::vector<std::string> hosts; ///< Host names and numeric addresses by which others connect to it.
};

/// When a certificate is valid.
struct certificate_period {
  std::chrono::system_clock::time_point from, until;

  /// From an hour before `now`, since clocks of hosts differ.
  static certificate_period starting(std::chrono::system_clock::time_point now, std::chrono::days length) {
    return {now - std::chrono::hours{1}, now + length};
  }
};

/// A new authority, which signs its own certificate. Errors: invalid_argument, for a name of more than 64 bytes.
caf::expected<certified_key> make_authority(const std::string& name, const certificate_period& valid);

/// A certificate that the authority signs, and a new key. It does for both ends of a connection; that of a client,
/// operator or observer for the end that connects alone. Errors: invalid_argument, for an authority that is none, a
/// name of more than 64 bytes, or a host that is neither a name nor an address.
caf::expected<certified_key> issue(const certified_key& authority, const certificate_subject& to,
                                   const certificate_period& valid);

/// What a certificate says. Errors: invalid_argument, for a text that is none, or a role that does not exist.
caf::expected<certificate_subject> subject_of(const std::string& certificate);

} // namespace ringmaster
