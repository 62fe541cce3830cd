#pragma once

#include "messages/errc.hpp"
#include "runtime/trust/certificates.hpp"

#include <caf/expected.hpp>

#include <memory>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string>
#include <string_view>

namespace ringmaster {

// OpenSSL's objects, for the sources that deal with certificates.

template <auto Free>
struct openssl_deleter {
  template <class T>
  void operator()(T* x) const {
    Free(x);
  }
};

using bio_ptr = std::unique_ptr<BIO, openssl_deleter<&::BIO_free_all>>;
using x509_ptr = std::unique_ptr<X509, openssl_deleter<&::X509_free>>;
using private_key_ptr = std::unique_ptr<EVP_PKEY, openssl_deleter<&::EVP_PKEY_free>>;

/// The latest error of OpenSSL on this thread, in its words; all earlier ones are forgotten.
std::string openssl_problem();

/// `what`: for errors: "the file host.pem". Errors: invalid_argument.
caf::expected<x509_ptr> read_certificate(std::string_view pem, const std::string& what);
caf::expected<private_key_ptr> read_private_key(std::string_view pem, const std::string& what);

/// Errors: invalid_argument, for a role that does not exist.
caf::expected<certificate_subject> subject_of(X509& certificate);

} // namespace ringmaster
