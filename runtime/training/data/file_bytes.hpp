#pragma once

#include <caf/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace ringmaster::training {

/// What a file holds, to be read only, as it was just then. One of 64 MiB or more is mapped, so that the processes of a
/// host share its pages: nobody may write to it, or cut it, while this lives.
class file_bytes {
public:
  /// Errors: io_error, naming the file.
  static caf::expected<file_bytes> of(const std::filesystem::path& file);

  file_bytes(file_bytes&& other) noexcept;
  file_bytes& operator=(file_bytes&&) = delete;
  ~file_bytes();

  std::span<const std::byte> bytes() const noexcept { return mapped_.empty() ? read_ : mapped_; }

private:
  file_bytes() = default;

  std::span<const std::byte> mapped_; ///< Empty: it was read.
  std::vector<std::byte> read_;
};

} // namespace ringmaster::training
