#include "gateway/http/server/tls_context.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <array>
#include <openssl/err.h>

namespace ringmaster::gateway {

namespace {

caf::error tls_error(const std::string& what) {
  std::array<char, 256> reason{};
  ::ERR_error_string_n(::ERR_get_error(), reason.data(), reason.size());
  ::ERR_clear_error();
  return invalid(fmt::format("{}: {}", what, reason.data()));
}

} // namespace

caf::expected<tls_context> open_tls(const std::filesystem::path& certificate, const std::filesystem::path& key,
                                    const std::filesystem::path& clients) {
  ::ERR_clear_error();
  tls_context result{::SSL_CTX_new(::TLS_server_method()), [](SSL_CTX* x) { ::SSL_CTX_free(x); }};
  if (!result)
    return tls_error("TLS is not available");
  ::SSL_CTX_set_min_proto_version(result.get(), TLS1_3_VERSION);
  ::SSL_CTX_set_options(result.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_mode(result.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_session_cache_mode(result.get(), SSL_SESS_CACHE_OFF);
  if (::SSL_CTX_use_certificate_chain_file(result.get(), certificate.c_str()) != 1)
    return tls_error(fmt::format("the certificate file '{}' cannot be used", certificate.string()));
  if (::SSL_CTX_use_PrivateKey_file(result.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_error(fmt::format("the key file '{}' cannot be used", key.string()));
  if (::SSL_CTX_check_private_key(result.get()) != 1)
    return tls_error(fmt::format("the key '{}' is not that of the certificate '{}'", key.string(),
                                 certificate.string()));
  if (clients.empty())
    return result;
  auto* names = ::SSL_load_client_CA_file(clients.c_str());
  if (names == nullptr || ::SSL_CTX_load_verify_file(result.get(), clients.c_str()) != 1)
    return tls_error(fmt::format("the clients' authority '{}' cannot be used", clients.string()));
  ::SSL_CTX_set_client_CA_list(result.get(), names); // which takes it
  ::SSL_CTX_set_options(result.get(), SSL_OP_NO_TICKET); // each connection shows its certificate
  ::SSL_CTX_set_verify(result.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return result;
}

} // namespace ringmaster::gateway
