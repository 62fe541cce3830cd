#include "runtime/trust/secret.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/trust/private_file.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <optional>

namespace ringmaster {

namespace {

constexpr std::string_view hex_mark = "hex:", hex_digits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string result;
  for (const char x : bytes) {
    result += hex_digits[static_cast<unsigned char>(x) >> 4];
    result += hex_digits[static_cast<unsigned char>(x) & 15];
  }
  return result;
}

std::optional<std::string> bytes_of_hex(std::string_view hex) {
  std::string result;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto high = hex_digits.find(hex[i]), low = hex_digits.find(hex[i + 1]);
    if (high == hex_digits.npos || low == hex_digits.npos)
      return std::nullopt;
    result += static_cast<char>(high << 4 | low);
  }
  return hex.size() % 2 == 0 ? std::optional{result} : std::nullopt;
}

constexpr const char* secret_file = "the secret file";

} // namespace

caf::expected<shared_secret> shared_secret::of(std::string bytes, const std::string& whose) {
  shared_secret result{std::move(bytes)}; // wipes it in any case
  const auto size = result.bytes_.size();
  if (size == 0)
    return invalid(fmt::format("{} is empty: `openssl rand -hex 32` makes a secret", whose));
  if (size < bytes_min)
    return invalid(fmt::format("{} has {} bytes, too few to be hard to guess; {} to {} are possible: `openssl rand "
                               "-hex 32` makes a secret",
                               whose, size, bytes_min, bytes_max));
  if (size > bytes_max)
    return invalid(fmt::format("{} has more than {} bytes; {} to {} are possible", whose, bytes_max, bytes_min,
                               bytes_max));
  return result;
}

shared_secret shared_secret::random() {
  std::string chance(bytes_min, '\0');
  const auto made = ::RAND_bytes(reinterpret_cast<unsigned char*>(chance.data()), static_cast<int>(chance.size()));
  ensure(made == 1, "the system has random bytes");
  shared_secret result{hex_of(chance)};
  ::OPENSSL_cleanse(chance.data(), chance.size());
  return result;
}

caf::expected<shared_secret> shared_secret::read(const std::filesystem::path& file) {
  constexpr size_t line_breaks = 2;
  TRY(bytes, read_private_file(file, secret_file, bytes_max + line_breaks));
  while (!bytes->empty() && (bytes->back() == '\n' || bytes->back() == '\r'))
    bytes->pop_back();
  return of(std::move(*bytes), fmt::format("{} {}", secret_file, file.string()));
}

caf::expected<shared_secret> shared_secret::parse(std::string_view text, const std::string& whose) {
  if (!text.starts_with(hex_mark))
    return of(std::string{text}, whose);
  auto bytes = bytes_of_hex(text.substr(hex_mark.size()));
  if (!bytes)
    return invalid(fmt::format("{} begins with \"{}\" and goes on with what are no pairs of the digits 0 to f", whose,
                               hex_mark));
  return of(std::move(*bytes), whose);
}

shared_secret::~shared_secret() {
  ::OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

std::string shared_secret::text() const {
  return std::string{hex_mark} + hex_of(bytes_);
}

bool shared_secret::operator==(const shared_secret& other) const {
  return bytes_.size() == other.bytes_.size()
         && ::CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

caf::error shared_secret::create(const std::filesystem::path& file) const {
  return create_private_file(file, secret_file, bytes_ + "\n");
}

caf::error shared_secret::replace(const std::filesystem::path& file) const {
  return replace_private_file(file, secret_file, bytes_ + "\n");
}

} // namespace ringmaster
