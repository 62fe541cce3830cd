#include "runtime/trust/tls_identity.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/certificate_parts.hpp"
#include "runtime/trust/private_file.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace ringmaster {

namespace {

constexpr size_t pem_bytes_max = 1u << 20;

using store_context_ptr = std::unique_ptr<X509_STORE_CTX, openssl_deleter<&::X509_STORE_CTX_free>>;

bool is_text(const std::string& file) {
  return file.starts_with("-----BEGIN ");
}

caf::expected<std::string> read_pem(const std::string& file, const char* what) {
  if (is_text(file))
    return file;
  std::ifstream in{file, std::ios::binary};
  std::string result(pem_bytes_max + 1, '\0');
  if (!in)
    return make_error(errc::io_error, fmt::format("the {} {} cannot be read: {}", what, file, std::strerror(errno)));
  in.read(result.data(), static_cast<std::streamsize>(result.size()));
  result.resize(static_cast<size_t>(in.gcount()));
  if (result.size() > pem_bytes_max)
    return invalid(fmt::format("the {} {} has more than {} bytes", what, file, pem_bytes_max));
  return result;
}

/// All certificates of a text; at least one.
caf::expected<std::vector<x509_ptr>> read_chain(const std::string& pem, const std::string& what) {
  TRY(first, read_certificate(pem, what));
  std::vector<x509_ptr> result;
  const bio_ptr in{::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  while (x509_ptr each{::PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)})
    result.push_back(std::move(each));
  ::ERR_clear_error();
  return result;
}

} // namespace

tls_identity::tls_identity(std::string origin) : context_(::SSL_CTX_new(::TLS_method())), origin_(std::move(origin)) {
  ensure(context_ != nullptr, "OpenSSL has TLS");
  ::SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  ::SSL_CTX_set_max_proto_version(context_, TLS1_3_VERSION);
  ::SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  // No session is resumed: each connection proves both certificates. A cut connection is a lost one, wherever it is
  // cut.
  ::SSL_CTX_set_options(context_, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  ::SSL_CTX_set_num_tickets(context_, 0);
  ::SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                                 | SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
}

tls_identity::~tls_identity() {
  ::SSL_CTX_free(context_);
}

caf::expected<tls_identity_ptr> tls_identity::unchecked(const certified_key& own, const std::string& authority,
                                                        const std::string& origin) {
  std::shared_ptr<tls_identity> result{new tls_identity{origin}};
  TRY(chain, read_chain(own.certificate, fmt::format("the certificate file {}", origin)));
  TRY(key, read_private_key(own.key, fmt::format("the key of the certificate {}", origin)));
  TRY(authorities, read_chain(authority, "the authority's file"));
  auto* context = result->context_;
  for (auto& each : *authorities)
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context), each.get());
  auto& leaf = *chain->front();
  ::ERR_clear_error();
  if (::X509_check_private_key(&leaf, key->get()) != 1)
    return invalid(fmt::format("the key is not that of the certificate {}", origin));
  if (::SSL_CTX_use_certificate(context, &leaf) != 1 || ::SSL_CTX_use_PrivateKey(context, key->get()) != 1)
    return invalid(fmt::format("the certificate {} cannot be used: {}", origin, openssl_problem()));
  for (size_t i = 1; i < chain->size(); ++i)
    ::SSL_CTX_add1_chain_cert(context, (*chain)[i].get());
  TRY(subject, subject_of(leaf));
  result->subject_ = std::move(*subject);
  return tls_identity_ptr{std::move(result)};
}

caf::error tls_identity::check() const {
  STACK_OF(X509)* others = nullptr;
  ::SSL_CTX_get0_chain_certs(context_, &others);
  const store_context_ptr about{::X509_STORE_CTX_new()};
  ::X509_STORE_CTX_init(about.get(), ::SSL_CTX_get_cert_store(context_), ::SSL_CTX_get0_certificate(context_), others);
  if (::X509_verify_cert(about.get()) == 1)
    return caf::none;
  return invalid(fmt::format("the certificate {} cannot be used with this authority: {}", origin_,
                             ::X509_verify_cert_error_string(::X509_STORE_CTX_get_error(about.get()))));
}

caf::expected<tls_identity_ptr> tls_identity::of(const certified_key& own, const std::string& authority,
                                                 const std::string& origin) {
  TRY(result, unchecked(own, authority, origin));
  RETURN_ERROR((*result)->check());
  return std::move(*result);
}

caf::expected<tls_identity_ptr> tls_identity::read(const files& from) {
  TRY(certificate, read_pem(from.certificate, "certificate file"));
  TRY(key, is_text(from.key) ? caf::expected<std::string>{from.key}
                             : read_private_file(from.key, "the key file", pem_bytes_max));
  TRY(authority, read_pem(from.authority, "authority's file"));
  return of({std::move(*certificate), std::move(*key)}, *authority,
            is_text(from.certificate) ? "that of RINGMASTER_CERTIFICATE in the environment" : from.certificate);
}

} // namespace ringmaster
