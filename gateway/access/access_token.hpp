#pragma once

#include <caf/expected.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace ringmaster::gateway {

/// A secret that a request must present.
class access_token {
public:
  static constexpr size_t bytes_min = 16, bytes_max = 1024;

  /// The first line of the file. Errors: io_error; invalid_argument for a token that is too short or too long, or that
  /// has characters which no HTTP header carries.
  static caf::expected<access_token> read(const std::filesystem::path& file);
  /// Errors: invalid_argument, as above. `source` is named in them.
  static caf::expected<access_token> of(std::string text, const std::string& source);

  /// Takes the same time wherever the two differ.
  bool equals(std::string_view presented) const;
  /// Whether an Authorization header presents it: "Bearer TOKEN".
  bool is_presented_in(std::string_view authorization) const;

private:
  explicit access_token(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

} // namespace ringmaster::gateway
