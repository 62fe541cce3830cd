#pragma once

#include "runtime/trust/greeting.hpp"
#include "runtime/trust/tls_identity.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct ssl_st;  // OpenSSL's SSL
struct x509_st; // ... and X509

namespace ringmaster {

/// Why a connection with TLS was given up.
struct tls_failure {
  greeting_refusal why;
  std::string text; ///< What the other end has done: "has no certificate".
};

struct tls_limits {
  size_t batch_bytes = 128u << 10;     ///< Encrypted before they are sent, and received before they are decrypted.
  uint64_t key_bytes_max = 1ull << 36; ///< Then the sender changes its key: AES-GCM allows some 2^38 a key.
};

/// One end of a connection with TLS 1.3, without the connection: the owner receives into `room()` and sends what is
/// `unsent()`. Both ends have certificates of the same authority.
///
///   handshake(): more... -> done -> read(), write()
///                        -> failed; what is unsent tells the other end why
class tls_session {
public:
  /// The end that has accepted the connection.
  explicit tls_session(tls_identity_ptr own, const tls_limits& limits = {});
  /// The end that has made it. The other end's certificate must have one of these host names and addresses.
  tls_session(tls_identity_ptr own, std::vector<std::string> hosts, const tls_limits& limits = {});
  ~tls_session();
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;

  enum class step : uint8_t { more, done, failed };
  step handshake();

  /// Not empty once `read` or `handshake` wants more.
  std::span<std::byte> room();
  void came(size_t bytes);
  std::span<const std::byte> unsent() const { return std::span{out_}.subspan(sent_); }
  void sent(size_t bytes);

  enum class read_step : uint8_t { some, more, closed, failed };
  struct read_result {
    read_step how;
    size_t bytes; ///< Of some.
  };
  read_result read(std::span<std::byte> to);
  /// Whether `read` has something without more of the connection.
  bool has_more() const;
  /// How many bytes are missing of the record that comes. Who receives no more holds nothing of those after it.
  size_t missing() const;
  /// Encrypts as much as a batch has room for. Returns how many bytes that were; they are in `unsent()`. Errors:
  /// none if the connection has failed.
  std::optional<size_t> write(std::span<const std::byte> bytes);

  /// The other end has closed the connection before the handshake was done.
  void cut_off();
  /// Of one that has failed.
  const tls_failure& failure() const { return *failure_; }
  /// How many bytes the other end has sent.
  uint64_t bytes_come() const { return bytes_come_; }
  /// Once the handshake is done: who the other end is, and a key that both ends of this connection alone know.
  tls_peer peer() const;
  /// Another key that both ends know, for that purpose.
  session_key key_for(std::string_view purpose) const;

private:
  friend struct tls_session_access;

  void start(bool accepts);
  step fail();
  /// Of a certificate that its authority has signed: an X.509 error, or 0.
  int judge(x509_st& certificate);
  tls_failure why_refused(int reason) const;
  std::string verification_text(long problem) const;

  const tls_identity_ptr own_;
  const std::vector<std::string> hosts_; ///< Empty: it has accepted.
  const tls_limits limits_;
  ssl_st* ssl_;
  std::vector<std::byte> in_;
  size_t in_begin_ = 0, in_end_ = 0;
  std::vector<std::byte> out_;
  size_t sent_ = 0;
  uint64_t bytes_come_ = 0;
  uint64_t of_key_ = 0;                     ///< Bytes that were encrypted with the present one.
  std::optional<certificate_subject> peer_; ///< Not proved before the handshake is done.
  std::string expired_;                     ///< When its certificate expires.
  std::optional<tls_failure> failure_;
};

} // namespace ringmaster
