#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ringmaster {

/// A small file beside a database with the number of records that were reported durable. It distinguishes a damaged
/// write-ahead log from one that merely ends early. It is written after the records have been synced and is not synced
/// itself: after a power failure its number may be too small, never too large.
class durable_mark {
public:
  /// The file's name within the journal's directory. A directory without it is no journal.
  static constexpr const char* file_name = "DURABLE";

  /// The number in `dir`; none if there is no mark, or if its creation was interrupted.
  /// Errors: corrupt, io_error.
  static caf::expected<std::optional<uint64_t>> read(const std::filesystem::path& dir);

  /// Opens the mark for writing; creates and syncs one with the number 0 if there is none. Errors: those of `read`.
  static caf::expected<durable_mark> open(const std::filesystem::path& dir);

  durable_mark(durable_mark&& other) noexcept;
  durable_mark& operator=(durable_mark&& other) noexcept;
  ~durable_mark();

  uint64_t value() const noexcept { return value_; }
  /// Whether the directory still has this open file under its name.
  bool in_place() const noexcept;
  /// The number never falls. Errors: io_error.
  caf::error raise(uint64_t value);

private:
  durable_mark(std::filesystem::path file, int fd, uint64_t value);

  std::filesystem::path file_;
  int fd_;
  uint64_t value_;
};

} // namespace ringmaster
