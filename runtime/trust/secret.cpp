#include "runtime/trust/secret.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
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

std::string named(const std::filesystem::path& file) {
  return fmt::format("the secret file {}", file.string());
}

caf::error system_problem(const std::string& what) {
  const auto problem = errno;
  return make_error(problem == ENOSPC || problem == EDQUOT ? errc::no_space : errc::io_error,
                    fmt::format("{}: {}", what, std::strerror(problem)));
}

caf::error check_about(const struct stat& about, const std::filesystem::path& file) {
  if (S_ISDIR(about.st_mode))
    return invalid(fmt::format("{} is a directory: name a file in it", named(file)));
  if (!S_ISREG(about.st_mode))
    return invalid(fmt::format("{} is no regular file", named(file)));
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return invalid(fmt::format("{} has the permissions {:04o}, so other users can read or change it: chmod 600 {}",
                               named(file), about.st_mode & 07777, file.string()));
  return caf::none;
}

caf::error write_whole(int descriptor, std::string_view bytes, const std::string& whose) {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return system_problem(fmt::format("{} cannot be written", whose));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return ::fsync(descriptor) == 0 ? caf::error{} : system_problem(fmt::format("{} cannot be written", whose));
}

/// Writes a file of another name, and has `finish` give it its own.
template <class Finish>
caf::error write_beside(const std::filesystem::path& file, std::string_view bytes, Finish finish) {
  auto temporary = file.string() + ".XXXXXX";
  open_file out{::mkostemp(temporary.data(), O_CLOEXEC)}; // with the permissions 0600
  if (out.descriptor < 0)
    return system_problem(fmt::format("{} cannot be written", named(file)));
  auto problem = write_whole(out.descriptor, std::string{bytes} + "\n", named(file));
  if (!problem)
    problem = finish(temporary.c_str());
  if (problem)
    ::unlink(temporary.c_str());
  return problem;
}

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
  const open_file in{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a pipe without a writer must not block
  if (in.descriptor < 0 && errno == ENOENT)
    return make_error(errc::io_error, fmt::format("{} does not exist", named(file)));
  if (in.descriptor < 0)
    return system_problem(fmt::format("{} cannot be read", named(file)));
  struct stat about {};
  if (::fstat(in.descriptor, &about) != 0)
    return system_problem(fmt::format("{} cannot be read", named(file)));
  RETURN_ERROR(check_about(about, file));
  constexpr size_t line_breaks = 2;
  std::string bytes(bytes_max + line_breaks + 1, '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const auto count = ::read(in.descriptor, bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return system_problem(fmt::format("{} cannot be read", named(file)));
    if (count == 0)
      break;
    got += static_cast<size_t>(count);
  }
  bytes.resize(got);
  while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r'))
    bytes.pop_back();
  return of(std::move(bytes), named(file));
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
  return write_beside(file, bytes_, [&](const char* written) -> caf::error {
    if (::link(written, file.c_str()) == 0) { // which, unlike a rename, replaces nothing
      ::unlink(written);
      return caf::none;
    }
    if (errno == EEXIST)
      return make_error(errc::in_use, fmt::format("{} exists already, and is not overwritten", named(file)));
    return system_problem(fmt::format("{} cannot be written", named(file)));
  });
}

caf::error shared_secret::replace(const std::filesystem::path& file) const {
  return write_beside(file, bytes_, [&](const char* written) -> caf::error {
    if (::rename(written, file.c_str()) == 0)
      return caf::none;
    return system_problem(fmt::format("{} cannot be written", named(file)));
  });
}

} // namespace ringmaster
