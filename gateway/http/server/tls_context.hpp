#pragma once

#include <caf/expected.hpp>

#include <filesystem>
#include <memory>
#include <openssl/ssl.h>

namespace ringmaster::gateway {

/// What connections with TLS share: the certificate and the protocol versions. Thread-safe.
using tls_context = std::shared_ptr<SSL_CTX>;

/// TLS 1.2 and later, without compression and renegotiation. `certificate` is a PEM file with the chain, own
/// certificate first. `clients`: a PEM file with an authority that has signed the certificates that clients must have;
/// empty: they need none. Errors: invalid_argument with the file and OpenSSL's reason.
caf::expected<tls_context> open_tls(const std::filesystem::path& certificate, const std::filesystem::path& key,
                                    const std::filesystem::path& clients = {});

} // namespace ringmaster::gateway
