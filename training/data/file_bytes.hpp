#pragma once

#include "runtime/memory/mapping_guard.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace ringmaster::training {

/// What a file holds, to be read only, as it was just then. One of 64 MiB or more is mapped, so that the processes of a
/// host share its pages: no process may write to it while this exists, and if one truncates it, `damage` says so.
class file_bytes {
public:
  /// Errors: io_error, naming the file.
  static caf::expected<file_bytes> of(const std::filesystem::path& file);

  file_bytes(file_bytes&&) noexcept = default;
  file_bytes& operator=(file_bytes&&) = delete;

  std::span<const std::byte> bytes() const noexcept;

  bool is_mapped() const noexcept { return mapped_ != nullptr; }
  /// What was read of `bytes` so far means nothing, since the file was cut. Errors: io_error, naming it.
  caf::error damage() const;

private:
  class mapping {
  public:
    explicit mapping(std::span<std::byte> bytes) : bytes_(bytes), guard_(bytes.data(), bytes.size()) {}
    mapping(const mapping&) = delete;
    ~mapping();

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    bool struck() const noexcept { return guard_.struck(); }

  private:
    std::span<std::byte> bytes_;
    mapping_guard guard_;
  };

  explicit file_bytes(std::filesystem::path file) : file_(std::move(file)) {}

  std::filesystem::path file_;
  std::unique_ptr<const mapping> mapped_; ///< Null: it was read.
  std::vector<std::byte> read_;
};

} // namespace ringmaster::training
