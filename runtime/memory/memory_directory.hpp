#pragma once

#include "runtime/memory/mapped_memory.hpp"

#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>

namespace ringmaster {

/// Where the memory files of one process lie: a directory of its own, for other processes' devices have the same names
/// in another cluster. It is made in the directory that the configuration names, or else in the first of /dev/shm,
/// TMPDIR and /tmp that has room, locked as long as this object lives, and removed with it; those that killed processes
/// have left there are removed when the next one is made.
class memory_directory {
public:
  /// `bytes` is what all files together may grow to: what is written to a mapped file whose disk is full is lost.
  /// `file_bytes` is what each of them may grow to, for which the process's limit must allow. `configured` must be
  /// there, unless it is empty. Errors: io_error, with the path and the reason, the room there is, or the limit.
  static caf::expected<memory_directory> open(const std::filesystem::path& configured, uint64_t bytes,
                                              uint64_t file_bytes = 0);

  memory_directory(memory_directory&& other) noexcept;
  memory_directory& operator=(memory_directory&& other) noexcept;
  ~memory_directory();

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Makes it again if it was removed, or its lock, by which others know that it is in use: what was there
  /// lives on without a name, and what comes has a place. Returns whether it did. Threadsafe. Errors: io_error, with
  /// the path and the reason.
  caf::expected<bool> keep();

private:
  caf::error lock();

  memory_directory() = default;

  std::filesystem::path path_;
  int lock_ = -1; ///< -1: moved from.
};

/// Whether the file of another process's memory is shorter than the memory by now, because it was truncated: what
/// `damage` says only when the bytes that are missing have been touched. One look at the file system. Errors:
/// device_lost.
caf::error shortage_of(const mapped_memory& memory);

} // namespace ringmaster
