#pragma once

#include "runtime/trust/credentials.hpp"
#include "runtime/trust/listener_kind.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ringmaster {

// The greeting of every TCP connection between two processes of Ringmaster. It is over before anything else of the
// connection is read, and shows each end that the other one knows the cluster's secret, which is never sent:
//
//   acceptor -> initiator   challenge   "ring-ask", version 4, method 1, purpose 1, listener 1, role and cipher 1,
//                                       nonce 32
//   initiator -> acceptor   answer      "ring-ans", the same 8 bytes, nonce 32, name 32, proof 32
//   acceptor -> initiator   verdict     verdict 1, 0 7, proof 32
//
// The byte before the nonce has the role in its upper half and the cipher in its lower half.
//
// `role` and `name` are those of the secret that an end has. Both ends prove one secret: that of the initiator's role
// and name, which an acceptor with the cluster's own secret derives (role_secret.hpp). An acceptor that has only the
// secret of its role admits those of the same role; one that has the cluster's secret connects to it by that as well.
//
// Numbers are little-endian. A proof is HMAC-SHA-256 with the secret over a label that names the protocol and the end
// that proves, and over all bytes before it: so over both nonces, role and name, and what the connection is for. A
// recorded greeting has another nonce, a reflected one another label, one from another port another purpose. With
// the method `none` proofs are zeros.
//
// The cipher is 0; 1 for TLS 1.3; or 2, for bulk connections, for TLS 1.3 until the greeting is done, and then records
// that are authenticated and not encrypted (authenticated_records.hpp). With 1 and 2 the handshake follows the
// challenge, with certificates on both sides, and all later bytes are inside of it. The proofs are then also over a key
// of this TLS connection, so that they are worth nothing to one who stands between two of them. Both ends must want the
// same, so no one can talk them out of TLS.

/// Why a connection was not admitted. The numbers travel.
enum class greeting_refusal : uint8_t {
  cut_short = 2,      ///< The other end closed the connection in the middle of its greeting, or before.
  too_slow = 3,       ///< It did not greet in time.
  too_many = 4,       ///< Others came while it had not greeted.
  http = 5,           ///< It speaks HTTP.
  tls = 6,            ///< It speaks TLS.
  older_version = 7,  ///< It is a version of Ringmaster without this greeting.
  other_bytes = 8,    ///< It speaks something else.
  other_greeting = 9, ///< It has another version of this greeting.
  no_secret = 10,     ///< It proves nothing, and the secret is required.
  wrong_secret = 11,  ///< Its proof is wrong: another secret, or a recorded greeting.
  reflected = 12,     ///< It sent our own challenge back.
  other_purpose = 13, ///< It wants to connect to something else.
  not_required = 14,  ///< It proves a secret, and we have none.
  // Of TLS.
  not_encrypted = 15,       ///< It does not encrypt, and we do.
  encrypted = 16,           ///< It requires TLS, and we have no certificate.
  no_certificate = 17,      ///< It has none.
  expired_certificate = 18, ///< Or one that is not valid yet.
  other_authority = 19,     ///< Our authority has not signed its certificate.
  other_host = 20,          ///< Its certificate is for other hosts.
  other_role = 21,        ///< Its certificate is for the other end of a connection, or has a role that does not exist.
  refuses_expired = 22,   ///< It says that our certificate has expired,
  refuses_authority = 23, ///< ... that its authority has not signed it,
  refuses_host = 24,      ///< ... that it is for other hosts, or not valid yet.
  tls_failed = 25,        ///< It speaks another version of TLS, or cut the handshake off.
  other_protection = 26,  ///< It has another value of trust.bulk.
  // Of roles.
  may_not_connect = 27, ///< It has a role that may not connect here.
  not_derivable = 28,   ///< Its secret is of a role that this end, without the cluster's own secret, cannot check.
  two_roles = 29        ///< Its certificate is of one role, and its secret of another.
};

/// "it speaks HTTP, which a gateway (ringmaster-gateway) serves"
std::string_view text_of(greeting_refusal why);

using greeting_nonce = std::array<std::byte, 32>;
using greeting_proof = std::array<std::byte, 32>;
using session_key = std::array<std::byte, 32>;

/// 32 bytes that no one can guess.
greeting_nonce random_nonce();

/// What TLS has proved of the other end.
struct tls_peer {
  peer_identity identity;
  session_key binding; ///< The same at both ends of this connection, and known to no one else.
};

/// What both ends of a connection know once it is admitted.
struct session {
  peer_identity peer;
  /// The same at both ends, other for each connection, and known to no one else. Zeros if nothing was proved.
  session_key key{};
};

constexpr size_t challenge_bytes = 48, answer_bytes = 112, verdict_bytes = 40;

/// The end that has accepted a connection.
///
///   sends challenge() -> take(): more... -> admitted, with the verdict to send
///                                        -> refused, with the verdict to send before closing
///
/// Nothing is taken after the last two. Where it `awaits_tls`, the handshake comes first, then `secured`; who greets
/// without it is refused.
class greeting_acceptor {
public:
  struct more {};
  struct admitted {
    session with;
    std::array<std::byte, verdict_bytes> verdict;
  };
  struct refused {
    greeting_refusal why;
    std::array<std::byte, verdict_bytes> verdict;
  };
  using step = std::variant<more, admitted, refused>;

  greeting_acceptor(credentials_ptr own, listener_kind as, const greeting_nonce& nonce = random_nonce());

  std::span<const std::byte> challenge() const { return challenge_; }
  bool awaits_tls() const { return own_->tls != nullptr && !tls_; }
  /// The handshake is done.
  void secured(tls_peer peer) { tls_ = std::move(peer); }
  /// How many bytes may be read at most: never one of those that follow the greeting.
  size_t wanted() const { return answer_bytes - got_; }
  /// What has come.
  step take(std::span<const std::byte> bytes);
  /// For a connection that is closed for another reason.
  static std::array<std::byte, verdict_bytes> verdict_of(greeting_refusal why);

private:
  step judge() const;
  greeting_refusal why_in_plain() const;

  credentials_ptr own_;
  listener_kind kind_;
  std::optional<tls_peer> tls_;
  std::array<std::byte, challenge_bytes> challenge_;
  std::array<std::byte, answer_bytes> answer_{};
  size_t got_ = 0;
};

/// The end that has made a connection.
///
///   take(): more... -> answer, to send -> more... -> admitted
///                   -> secure, for a handshake; then secured() is the answer, to send
///                   -> failed, with what is to be sent before closing
class greeting_initiator {
public:
  struct more {};
  struct answer {
    std::array<std::byte, answer_bytes> bytes;
  };
  struct secure {
    tls_identity_ptr own;
  };
  struct admitted {
    session with;
    protection as = protection::none; ///< Of all that follows.
  };
  struct failed {
    caf::error why;
    std::vector<std::byte> last_words; ///< From which the other end knows why; may be empty.
  };
  using step = std::variant<more, answer, secure, admitted, failed>;
  /// Called once, when a challenge has come: a coordinator that makes its secret has made it by then. Its error is that
  /// of the connection if it is invalid_config; else it says why there are no credentials.
  using finder = std::function<caf::expected<credentials_ptr>()>;

  /// `where`: the other end, for errors.
  greeting_initiator(finder own, listener_kind whom, std::string where, const greeting_nonce& nonce = random_nonce());

  size_t wanted() const { return (challenged_ ? verdict_bytes : challenge_bytes) - got_; }
  /// What has come. Errors: unauthenticated, with what to do; wrong_version; not_ringmaster; invalid_argument, where
  /// something else of Ringmaster listens; unreachable, where the other end has too much to do; those of the finder.
  step take(std::span<const std::byte> bytes);
  /// The handshake is done.
  answer secured(tls_peer peer);
  /// The error if it failed, with what the other end has done: "has no certificate".
  caf::error not_secured(const std::string& why) const;
  /// The error if the other end closes the connection now.
  caf::error cut_short() const;

private:
  step take_challenge();
  step take_verdict() const;
  /// What the first bytes show, if they are not of a challenge.
  caf::error check_start() const;
  /// Why this end and the other one do not want the same; empty: they do.
  std::string disagreement(bool they_prove, bool they_encrypt) const;
  void fill_answer();
  /// The secret to prove, which is what `own_` is for the acceptor's role. Errors: unauthenticated.
  caf::error choose_secret(role of_acceptor);
  void prove();
  failed unauthenticated(const std::string& why) const;
  /// The same, and the other end is to know, too.
  failed no_agreement(const std::string& why) const;

  finder find_own_;
  credentials_ptr own_; ///< From `take_challenge` on: as what it proves itself to this acceptor.
  listener_kind kind_;
  peer_identity other_; ///< Whom the acceptor is, if its proof is right.
  std::string where_;
  greeting_nonce nonce_;
  std::optional<tls_peer> tls_;
  std::array<std::byte, challenge_bytes> challenge_{};
  std::array<std::byte, answer_bytes> answer_{};
  std::array<std::byte, verdict_bytes> verdict_{};
  bool challenged_ = false;
  size_t got_ = 0;
};

} // namespace ringmaster
