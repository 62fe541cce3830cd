#include "runtime/trust/certificates.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/certificate_parts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>

namespace ringmaster {

namespace {

using extension_ptr = std::unique_ptr<X509_EXTENSION, openssl_deleter<&::X509_EXTENSION_free>>;
using names_ptr = std::unique_ptr<GENERAL_NAMES, openssl_deleter<&::GENERAL_NAMES_free>>;
using serial_ptr = std::unique_ptr<BIGNUM, openssl_deleter<&::BN_free>>;

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<size_t>(size)};
}

std::string pem_of(X509& x) {
  const bio_ptr out{::BIO_new(::BIO_s_mem())};
  ensure(::PEM_write_bio_X509(out.get(), &x) == 1, "a certificate has a text");
  return text_of(out.get());
}

std::string pem_of(EVP_PKEY& x) {
  const bio_ptr out{::BIO_new(::BIO_s_secmem())};
  ensure(::PEM_write_bio_PKCS8PrivateKey(out.get(), &x, nullptr, nullptr, 0, nullptr, nullptr) == 1,
         "a key has a text");
  return text_of(out.get());
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1
         || ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

caf::error check_name(const std::string& name) {
  constexpr size_t name_bytes_max = 64; // of X.509
  if (!name.empty() && name.size() <= name_bytes_max && std::ranges::all_of(name, [](char x) { return x > ' '; }))
    return caf::none;
  return invalid(fmt::format("\"{}\" cannot be the name in a certificate: it must have 1 to {} bytes, without blanks",
                             name, name_bytes_max));
}

caf::error check_host(const std::string& host) {
  const auto is_letter = [](char x) {
    return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') || x == '-' || x == '.'
           || x == '_';
  };
  if (is_numeric(host) || (!host.empty() && std::ranges::all_of(host, is_letter)))
    return caf::none;
  return invalid(fmt::format("\"{}\" is neither a host name nor a numeric address", host));
}

void add_entry(X509_NAME* to, const char* field, std::string_view text) {
  ensure(::X509_NAME_add_entry_by_txt(to, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0)
           == 1,
         "names in certificates were checked");
}

void add_extension(X509& to, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, &issuer, &to, nullptr, nullptr, 0);
  const extension_ptr made{::X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str())};
  ensure(made != nullptr && ::X509_add_ext(&to, made.get(), -1) == 1, "extensions of certificates are well formed");
}

/// With all but extensions and signature.
x509_ptr start_certificate(const certificate_subject& to, const certificate_period& valid, EVP_PKEY& key) {
  constexpr int version_3 = 2, serial_bits = 127;
  x509_ptr result{::X509_new()};
  const serial_ptr serial{::BN_new()};
  ensure(result && serial && ::BN_rand(serial.get(), serial_bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1
           && ::BN_to_ASN1_INTEGER(serial.get(), ::X509_get_serialNumber(result.get())) != nullptr,
         "a certificate has a number");
  ::X509_set_version(result.get(), version_3);
  ::ASN1_TIME_set(::X509_getm_notBefore(result.get()), std::chrono::system_clock::to_time_t(valid.from));
  ::ASN1_TIME_set(::X509_getm_notAfter(result.get()), std::chrono::system_clock::to_time_t(valid.until));
  auto* subject = ::X509_get_subject_name(result.get());
  add_entry(subject, "CN", to.name);
  if (to.as != role::member)
    add_entry(subject, "OU", name_of(to.as));
  ::X509_set_pubkey(result.get(), &key);
  return result;
}

void sign(X509& x, EVP_PKEY& by) {
  ensure(::X509_sign(&x, &by, ::EVP_sha256()) > 0, "certificates can be signed");
}

bool only_connects(role x) {
  return x == role::client || x == role::operating || x == role::observer;
}

std::string entry_of(X509_NAME* name, int kind) {
  const auto at = ::X509_NAME_get_index_by_NID(name, kind, -1);
  if (at < 0)
    return {};
  unsigned char* text = nullptr;
  const auto size = ::ASN1_STRING_to_UTF8(&text, ::X509_NAME_ENTRY_get_data(::X509_NAME_get_entry(name, at)));
  std::string result;
  if (size > 0)
    result.assign(reinterpret_cast<char*>(text), static_cast<size_t>(size));
  ::OPENSSL_free(text);
  return result;
}

std::string host_text(const GENERAL_NAME& x) {
  const auto* bytes = ::ASN1_STRING_get0_data(x.type == GEN_DNS ? x.d.dNSName : x.d.iPAddress);
  const auto size = ::ASN1_STRING_length(x.type == GEN_DNS ? x.d.dNSName : x.d.iPAddress);
  if (x.type == GEN_DNS)
    return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)};
  char text[INET6_ADDRSTRLEN] = {};
  const auto* made = ::inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, bytes, text, sizeof text);
  return made == nullptr || (size != sizeof(in_addr) && size != sizeof(in6_addr)) ? std::string{} : text;
}

} // namespace

certified_key::~certified_key() {
  ::OPENSSL_cleanse(key.data(), key.size());
}

std::string openssl_problem() {
  const auto code = ::ERR_peek_last_error();
  ::ERR_clear_error();
  if (code == 0)
    return "OpenSSL does not say why";
  const auto* reason = ::ERR_reason_error_string(code);
  return reason == nullptr ? fmt::format("OpenSSL's error {:#x}", code) : reason;
}

caf::expected<x509_ptr> read_certificate(std::string_view pem, const std::string& what) {
  ::ERR_clear_error();
  const bio_ptr in{::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  x509_ptr result{::PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)};
  if (!result)
    return invalid(fmt::format("{} has no certificate in PEM: {}", what, openssl_problem()));
  return result;
}

caf::expected<private_key_ptr> read_private_key(std::string_view pem, const std::string& what) {
  ::ERR_clear_error();
  const bio_ptr in{::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  const auto no_passphrase = [](char*, int, int, void*) { return -1; }; // a daemon cannot ask
  private_key_ptr result{::PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr)};
  if (!result)
    return invalid(fmt::format("{} has no private key in PEM without a passphrase: {}", what, openssl_problem()));
  return result;
}

caf::expected<certified_key> make_authority(const std::string& name, const certificate_period& valid) {
  RETURN_ERROR(check_name(name));
  const private_key_ptr key{::EVP_EC_gen("P-256")};
  ensure(key != nullptr, "the system has random bytes");
  const auto made = start_certificate({name, role::member, {}}, valid, *key);
  ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(made.get()));
  add_extension(*made, *made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(*made, *made, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(*made, *made, NID_subject_key_identifier, "hash");
  sign(*made, *key);
  return certified_key{pem_of(*made), pem_of(*key)};
}

caf::expected<certified_key> issue(const certified_key& authority, const certificate_subject& to,
                                   const certificate_period& valid) {
  RETURN_ERROR(check_name(to.name));
  TRY(issuer, read_certificate(authority.certificate, "the authority"));
  TRY(issuer_key, read_private_key(authority.key, "the authority's key"));
  if (::X509_check_ca(issuer->get()) != 1)
    return invalid("the certificate that is to sign is not that of an authority");
  if (::X509_check_private_key(issuer->get(), issuer_key->get()) != 1)
    return invalid("the authority's key is not that of its certificate");
  const private_key_ptr key{::EVP_EC_gen("P-256")};
  ensure(key != nullptr, "the system has random bytes");
  const auto made = start_certificate(to, valid, *key);
  ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(issuer->get()));
  add_extension(*made, **issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(*made, **issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(*made, **issuer, NID_ext_key_usage, only_connects(to.as) ? "clientAuth" : "serverAuth,clientAuth");
  add_extension(*made, **issuer, NID_subject_key_identifier, "hash");
  add_extension(*made, **issuer, NID_authority_key_identifier, "keyid");
  std::string hosts;
  for (auto& host : to.hosts) {
    RETURN_ERROR(check_host(host));
    hosts += fmt::format("{}{}:{}", hosts.empty() ? "" : ",", is_numeric(host) ? "IP" : "DNS", host);
  }
  if (!hosts.empty())
    add_extension(*made, **issuer, NID_subject_alt_name, hosts);
  sign(*made, **issuer_key);
  return certified_key{pem_of(*made), pem_of(*key)};
}

caf::expected<certificate_subject> subject_of(X509& certificate) {
  auto* subject = ::X509_get_subject_name(&certificate);
  certificate_subject result{entry_of(subject, NID_commonName), role::member, {}};
  if (const auto unit = entry_of(subject, NID_organizationalUnitName); !unit.empty()) {
    const auto known = parse_role(unit);
    if (!known)
      return invalid(fmt::format("the certificate of \"{}\" has the role OU={}, which does not exist", result.name,
                                 unit));
    result.as = *known;
  }
  const names_ptr names{
    static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i)
    if (const auto* each = sk_GENERAL_NAME_value(names.get(), i); each->type == GEN_DNS || each->type == GEN_IPADD)
      result.hosts.push_back(host_text(*each));
  return result;
}

caf::expected<certificate_subject> subject_of(const std::string& certificate) {
  TRY(read, read_certificate(certificate, "the text"));
  return subject_of(**read);
}

} // namespace ringmaster
