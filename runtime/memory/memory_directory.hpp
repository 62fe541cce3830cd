#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>

namespace ringmaster {

/// Where the memory files of one process lie. A directory that the configuration names is used as it is and kept. A
/// fresh one is made in the first of /dev/shm, TMPDIR and /tmp that has room, locked as long as this object lives, and
/// removed with it; those that killed processes have left there are removed when the next one is made.
class memory_directory {
public:
  /// `bytes` is what all files together may grow to: a mapped file whose disk is full kills the process that writes to
  /// it. Errors: io_error, with the path and the system's reason, or the room there is.
  static caf::expected<memory_directory> open(const std::filesystem::path& configured, uint64_t bytes);

  memory_directory(memory_directory&& other) noexcept;
  memory_directory& operator=(memory_directory&& other) noexcept;
  ~memory_directory();

  const std::filesystem::path& path() const noexcept { return path_; }

private:
  memory_directory() = default;

  std::filesystem::path path_;
  int lock_ = -1; ///< Of a fresh directory.
};

} // namespace ringmaster
