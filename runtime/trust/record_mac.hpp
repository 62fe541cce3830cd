#pragma once

#include "runtime/trust/greeting.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct evp_cipher_ctx_st; // OpenSSL's EVP_CIPHER_CTX

namespace ringmaster {

/// The authentication of records in one direction of a connection: Poly1305 with a key of ChaCha20's for each record
/// (RFC 8439, without a text to encrypt). Records are numbered, so that none can be left out, repeated or moved.
class record_mac {
public:
  using tag = std::array<std::byte, 16>;

  explicit record_mac(const session_key& key);
  ~record_mac();
  record_mac(record_mac&& x) noexcept : context_(std::exchange(x.context_, nullptr)), records_(x.records_) {}
  record_mac& operator=(record_mac&&) = delete;

  /// The tag of the next record, which is these parts.
  tag next(std::span<const std::span<const std::byte>> parts);

private:
  evp_cipher_ctx_st* context_;
  uint64_t records_ = 0;
};

} // namespace ringmaster
