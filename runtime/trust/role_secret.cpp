#include "runtime/trust/role_secret.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/credentials.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <optional>

namespace ringmaster {

namespace {

constexpr size_t derived_bytes = 32;

bool is_name_character(char x) {
  return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') || x == '.' || x == '_' || x == '-';
}

} // namespace

std::string text_of(const peer_identity& who) {
  return who.name.empty() ? std::string{name_of(who.as)} : fmt::format("{} {}", name_of(who.as), who.name);
}

std::string role_secret::text() const {
  auto hex = secret.text(); // "hex:..."
  if (as == role::member)
    return hex;
  return fmt::format("{}{}{}{}", name_of(as), name.empty() ? "" : "/", name, hex.substr(hex.find(':')));
}

shared_secret derive_secret(const shared_secret& of_cluster, role as, std::string_view name) {
  const auto label = fmt::format("ringmaster role 1: {}\n{}\n", name_of(as), name);
  std::array<unsigned char, derived_bytes> derived{};
  unsigned size = 0;
  const auto* made = ::HMAC(::EVP_sha256(), of_cluster.bytes().data(), static_cast<int>(of_cluster.bytes().size()),
                            reinterpret_cast<const unsigned char*>(label.data()), label.size(), derived.data(), &size);
  ensure(made != nullptr && size == derived.size(), "SHA-256 has 32 bytes");
  auto result = shared_secret::of({derived.begin(), derived.end()}, "a derived secret");
  ::OPENSSL_cleanse(derived.data(), derived.size());
  ensure(static_cast<bool>(result), "32 bytes are a secret");
  return std::move(*result);
}

caf::error check_secret_name(role as, std::string_view name) {
  if (name.empty())
    return caf::none;
  if (as == role::node || as == role::rank)
    return invalid(fmt::format("a {}'s secret has no name: {}s check each other by it, so all need the same",
                               name_of(as), name_of(as)));
  if (name.size() > secret_name_bytes_max)
    return invalid(fmt::format("the name \"{}\" has {} bytes, and may have {}", name, name.size(),
                               secret_name_bytes_max));
  if (!std::ranges::all_of(name, is_name_character))
    return invalid(fmt::format("the name \"{}\" may have letters, digits, '.', '_' and '-' only", name));
  return caf::none;
}

caf::expected<role_secret> role_secret_of(const shared_secret& stored, const std::string& whose) {
  const auto bytes = stored.bytes();
  const auto colon = bytes.find(':'), slash = bytes.substr(0, std::min(colon, bytes.size())).find('/');
  const auto as = colon == bytes.npos ? std::nullopt : parse_role(bytes.substr(0, std::min(colon, slash)));
  if (!as)
    return role_secret{role::member, {}, stored};
  const std::string name{slash == bytes.npos ? std::string_view{} : bytes.substr(slash + 1, colon - slash - 1)};
  if (auto problem = check_secret_name(*as, name))
    return with_context(whose, problem);
  TRY(secret, shared_secret::parse("hex:" + std::string{bytes.substr(colon + 1)}, whose));
  if (secret->bytes().size() != derived_bytes)
    return invalid(
      fmt::format("{} is a secret of the role {} and has {} bytes instead of {}: `ringmaster secret --role "
                  "{}` makes one",
                  whose, name_of(*as), secret->bytes().size(), derived_bytes, name_of(*as)));
  return role_secret{*as, name, std::move(*secret)};
}

} // namespace ringmaster
