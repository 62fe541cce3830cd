#include "runtime/trust/record_mac.hpp"

#include "runtime/invariants/ensure.hpp"

#include <openssl/evp.h>

#include <cstring>

namespace ringmaster {

record_mac::record_mac(const session_key& key) : context_(::EVP_CIPHER_CTX_new()) {
  const auto made = ::EVP_EncryptInit_ex(context_, ::EVP_chacha20_poly1305(), nullptr,
                                         reinterpret_cast<const unsigned char*>(key.data()), nullptr);
  ensure(context_ != nullptr && made == 1, "OpenSSL has ChaCha20-Poly1305");
}

record_mac::~record_mac() {
  ::EVP_CIPHER_CTX_free(context_);
}

record_mac::tag record_mac::next(std::span<const std::span<const std::byte>> parts) {
  std::array<unsigned char, 12> nonce{};
  std::memcpy(nonce.data(), &records_, sizeof records_);
  ++records_;
  bool made = ::EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr, nonce.data()) == 1;
  int ignored = 0;
  for (auto part : parts)
    made = made
           && ::EVP_EncryptUpdate(context_, nullptr, &ignored, reinterpret_cast<const unsigned char*>(part.data()),
                                  static_cast<int>(part.size()))
                == 1;
  tag result;
  unsigned char none = 0;
  made = made && ::EVP_EncryptFinal_ex(context_, &none, &ignored) == 1
         && ::EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, result.size(), result.data()) == 1;
  ensure(made, "a record has a tag");
  return result;
}

} // namespace ringmaster
