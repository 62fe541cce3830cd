#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace ringmaster {

/// What all processes of a cluster know and no other process does. A copy is wiped from memory when it is destroyed.
class shared_secret {
public:
  static constexpr size_t bytes_min = 32, bytes_max = 4096;

  /// Errors: invalid_argument, for a length that is not allowed; `whose` names it: "the secret file /etc/secret".
  static caf::expected<shared_secret> of(std::string bytes, const std::string& whose);

  /// A new one: 64 hexadecimal digits of 32 random bytes, which is easy to copy.
  static shared_secret random();

  /// Reads a file; line breaks at its end do not count. Errors: io_error, where it is missing or cannot be read;
  /// invalid_argument, where it is no regular file, where its group or other users may read or write it, or for its
  /// length.
  static caf::expected<shared_secret> read(const std::filesystem::path& file);

  /// Reads `text()` or the bytes themselves, as an environment variable has them. Errors: invalid_argument.
  static caf::expected<shared_secret> parse(std::string_view text, const std::string& whose);

  ~shared_secret();
  shared_secret(const shared_secret&) = default;
  shared_secret(shared_secret&&) noexcept = default;
  shared_secret& operator=(const shared_secret&) = default;
  shared_secret& operator=(shared_secret&&) noexcept = default;

  std::string_view bytes() const { return bytes_; }
  /// "hex:" and two digits a byte: one line, whatever the bytes.
  std::string text() const;
  bool operator==(const shared_secret& other) const;

  /// Writes it to a new file that only this user can read: the file appears whole or not at all. Errors: in_use where
  /// there is a file of that name, which stays as it is; io_error; no_space.
  caf::error create(const std::filesystem::path& file) const;
  /// The same, but a file of that name is replaced.
  caf::error replace(const std::filesystem::path& file) const;

private:
  explicit shared_secret(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string bytes_;
};

} // namespace ringmaster
