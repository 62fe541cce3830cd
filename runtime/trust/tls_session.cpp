#include "runtime/trust/tls_session.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/certificate_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>

namespace ringmaster {

/// What OpenSSL calls: a BIO on the buffers of a session, and the judgement of a certificate.
struct tls_session_access {
  static int read(BIO* bio, char* to, int size) {
    auto& x = *static_cast<tls_session*>(::BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto count = std::min(x.in_end_ - x.in_begin_, static_cast<size_t>(std::max(size, 0)));
    if (count == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(to, x.in_.data() + x.in_begin_, count);
    x.in_begin_ += count;
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* from, int size) {
    auto& x = *static_cast<tls_session*>(::BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto* bytes = reinterpret_cast<const std::byte*>(from);
    x.out_.insert(x.out_.end(), bytes, bytes + size);
    return size;
  }

  static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

  static const BIO_METHOD* method() {
    static const BIO_METHOD* result = [] {
      auto* made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ringmaster");
      ensure(made != nullptr && ::BIO_meth_set_read(made, &read) == 1 && ::BIO_meth_set_write(made, &write) == 1
               && ::BIO_meth_set_ctrl(made, &control) == 1,
             "OpenSSL takes a BIO of ours");
      return made;
    }();
    return result;
  }

  static int verify(int right, X509_STORE_CTX* context) {
    if (::X509_STORE_CTX_get_error_depth(context) != 0)
      return right;
    auto* ssl = static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(context, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto& x = *static_cast<tls_session*>(SSL_get_app_data(ssl));
    const auto problem = x.judge(*::X509_STORE_CTX_get_current_cert(context));
    if (right != 1)
      return right;
    if (problem != X509_V_OK)
      ::X509_STORE_CTX_set_error(context, problem);
    return problem == X509_V_OK ? 1 : 0;
  }
};

namespace {

constexpr size_t record_bytes_max = 16u << 10, record_header_bytes = 5;

bool is_for_host(X509& certificate, const std::string& host) {
  return ::X509_check_ip_asc(&certificate, host.c_str(), 0) == 1
         || ::X509_check_host(&certificate, host.data(), host.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr)
              == 1;
}

std::string date_text(const ASN1_TIME* time) {
  tm parts{};
  ::ASN1_TIME_to_tm(time, &parts);
  return fmt::format("{}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min);
}

} // namespace

tls_session::tls_session(tls_identity_ptr own, const tls_limits& limits) : own_(std::move(own)), limits_(limits) {
  start(true);
}

tls_session::tls_session(tls_identity_ptr own, std::vector<std::string> hosts, const tls_limits& limits)
  : own_(std::move(own)), hosts_(std::move(hosts)), limits_(limits) {
  ensure(!hosts_.empty(), "the end that connects knows to whom");
  start(false);
}

void tls_session::start(bool accepts) {
  ensure(own_ != nullptr && limits_.batch_bytes > record_bytes_max, "an end of TLS has a certificate and room for it");
  ssl_ = ::SSL_new(own_->context());
  auto* bio = ::BIO_new(tls_session_access::method());
  ensure(ssl_ != nullptr && bio != nullptr, "there is memory for a connection with TLS");
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  ::SSL_set_verify(ssl_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &tls_session_access::verify);
  if (accepts)
    ::SSL_set_accept_state(ssl_);
  else
    ::SSL_set_connect_state(ssl_);
}

tls_session::~tls_session() {
  ::SSL_free(ssl_);
}

// -- bytes -------------------------------------------------------------------------

std::span<std::byte> tls_session::room() {
  if (in_.empty())
    in_.resize(limits_.batch_bytes);
  if (in_begin_ > 0) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_); // less than a record
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  return std::span{in_}.subspan(in_end_);
}

void tls_session::came(size_t bytes) {
  in_end_ += bytes;
  bytes_come_ += bytes;
  ensure(in_end_ <= in_.size(), "no more comes than there is room for");
}

void tls_session::sent(size_t bytes) {
  sent_ += bytes;
  ensure(sent_ <= out_.size(), "no more is sent than there was to send");
  if (sent_ < out_.size())
    return;
  out_.clear();
  sent_ = 0;
}

size_t tls_session::missing() const {
  const auto have = in_end_ - in_begin_;
  if (have < record_header_bytes)
    return record_header_bytes - have;
  const auto* header = in_.data() + in_begin_;
  const auto whole = record_header_bytes
                     + (std::to_integer<size_t>(header[3]) << 8 | std::to_integer<size_t>(header[4]));
  return have < whole ? whole - have : 0;
}

bool tls_session::has_more() const {
  return ::SSL_pending(ssl_) > 0 || missing() == 0;
}

tls_session::read_result tls_session::read(std::span<std::byte> to) {
  if (failure_)
    return {read_step::failed, 0};
  ::ERR_clear_error();
  size_t count = 0;
  if (::SSL_read_ex(ssl_, to.data(), to.size(), &count) == 1)
    return {read_step::some, count};
  switch (::SSL_get_error(ssl_, 0)) {
    case SSL_ERROR_WANT_READ: return {read_step::more, 0};
    case SSL_ERROR_ZERO_RETURN: return {read_step::closed, 0};
    default: fail(); return {read_step::failed, 0};
  }
}

std::optional<size_t> tls_session::write(std::span<const std::byte> bytes) {
  size_t result = 0;
  ::ERR_clear_error();
  while (!failure_ && !bytes.empty() && out_.size() < limits_.batch_bytes) {
    if (of_key_ >= limits_.key_bytes_max) {
      ::SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED); // sent before the next record
      of_key_ = 0;
    }
    size_t count = 0;
    const auto record = bytes.first(std::min(bytes.size(), record_bytes_max));
    if (::SSL_write_ex(ssl_, record.data(), record.size(), &count) != 1) {
      fail();
      break;
    }
    bytes = bytes.subspan(count);
    result += count;
    of_key_ += count;
  }
  return failure_ ? std::nullopt : std::optional{result};
}

// -- the handshake -----------------------------------------------------------------

tls_session::step tls_session::handshake() {
  if (failure_)
    return step::failed;
  ::ERR_clear_error();
  const auto result = ::SSL_do_handshake(ssl_);
  if (result == 1) {
    ensure(peer_.has_value(), "a handshake is done when the other end's certificate was judged");
    return step::done;
  }
  return ::SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ ? step::more : fail();
}

int tls_session::judge(X509& certificate) {
  auto subject = subject_of(certificate);
  if (!subject)
    return X509_V_ERR_APPLICATION_VERIFICATION;
  const bool is_right = hosts_.empty()
                        || std::ranges::any_of(hosts_, [&](auto& host) { return is_for_host(certificate, host); });
  peer_ = std::move(*subject);
  expired_ = date_text(::X509_get0_notAfter(&certificate));
  return is_right ? X509_V_OK : X509_V_ERR_HOSTNAME_MISMATCH;
}

tls_peer tls_session::peer() const {
  ensure(peer_.has_value(), "an end is known after the handshake");
  return {{peer_->as, peer_->name}, key_for("EXPORTER-ringmaster-greeting")};
}

session_key tls_session::key_for(std::string_view purpose) const {
  session_key result;
  const auto made = ::SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(result.data()), result.size(),
                                                 purpose.data(), purpose.size(), nullptr, 0, 0);
  ensure(made == 1, "a connection with TLS 1.3 has keys");
  return result;
}

void tls_session::cut_off() {
  if (!failure_)
    failure_ = {greeting_refusal::cut_short, "closed the connection in the middle of the TLS handshake"};
}

// -- what went wrong -----------------------------------------------------------------

tls_session::step tls_session::fail() {
  const auto code = ::ERR_peek_error();
  const auto reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  failure_ = why_refused(reason);
  ::ERR_clear_error();
  return step::failed;
}

std::string tls_session::verification_text(long problem) const {
  const auto whose = peer_ ? fmt::format("the certificate of \"{}\"", peer_->name) : std::string{"a certificate"};
  switch (problem) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("has {}, which expired on {}: renew it, and start that process again", whose, expired_);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("has {}, which is not valid yet: are the clocks of both hosts right?", whose);
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return fmt::format("has {} for {}, and this process connects to {}: connect by a name of the certificate, or "
                         "make one with this name",
                         whose, peer_->hosts.empty() ? "no host" : fmt::format("{}", fmt::join(peer_->hosts, ", ")),
                         fmt::join(hosts_, " or "));
    case X509_V_ERR_APPLICATION_VERIFICATION: return "has a certificate with a role (OU) that does not exist";
    case X509_V_ERR_INVALID_PURPOSE:
      return "has a certificate that is not for this end of a connection: that of a client, operator or observer is "
             "only for connecting";
    default:
      return fmt::format("has {} that the authority of this process has not signed ({}): all processes of a cluster "
                         "need certificates of one authority",
                         whose, ::X509_verify_cert_error_string(problem));
  }
}

tls_failure tls_session::why_refused(int reason) const {
  const auto own = own_->origin();
  switch (reason) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED: {
      const auto problem = ::SSL_get_verify_result(ssl_);
      const auto why = problem == X509_V_ERR_CERT_HAS_EXPIRED || problem == X509_V_ERR_CERT_NOT_YET_VALID
                         ? greeting_refusal::expired_certificate
                       : problem == X509_V_ERR_HOSTNAME_MISMATCH ? greeting_refusal::other_host
                       : problem == X509_V_ERR_APPLICATION_VERIFICATION || problem == X509_V_ERR_INVALID_PURPOSE
                         ? greeting_refusal::other_role
                         : greeting_refusal::other_authority;
      return {why, verification_text(problem)};
    }
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return {greeting_refusal::no_certificate, "has no certificate"};
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return {greeting_refusal::refuses_expired,
              fmt::format("refuses this process's certificate {}, which has expired by its clock", own)};
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return {greeting_refusal::refuses_authority,
              fmt::format("refuses this process's certificate {}, which another authority has signed than its own: all "
                          "processes of a cluster need certificates of one authority",
                          own)};
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return {greeting_refusal::refuses_host,
              fmt::format("refuses this process's certificate {}: it connects by a name or address that this has not, "
                          "or by its clock the certificate is not valid yet",
                          own)};
    default: {
      const auto* text = ::ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason));
      return {greeting_refusal::tls_failed,
              fmt::format("does not speak TLS 1.3 as this process does: {}", text == nullptr ? "cut off" : text)};
    }
  }
}

} // namespace ringmaster
