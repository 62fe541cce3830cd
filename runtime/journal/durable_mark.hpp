#pragma once

#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ringmaster {

/// A small file beside a database that says how many records have been reported durable, so that a damaged
/// write-ahead log which looks like one that merely ends early is told from it. It is written after the records have
/// been synced and is itself not synced: after a loss of power it may say too little, never too much.
class durable_mark {
public:
  /// The file's name within the journal's directory. A directory without it is no journal.
  static constexpr const char* file_name = "DURABLE";

  /// What the mark in `dir` says; nothing where there is none, or where its creation was cut short.
  /// Errors: corrupt, io_error.
  static caf::expected<std::optional<uint64_t>> read(const std::filesystem::path& dir);

  /// Opens the mark for writing, a synced one that says 0 where there is none. Errors: as `read`.
  static caf::expected<durable_mark> open(const std::filesystem::path& dir);

  durable_mark(durable_mark&& other) noexcept;
  durable_mark& operator=(durable_mark&& other) noexcept;
  ~durable_mark();

  uint64_t value() const noexcept { return value_; }
  /// Whether the open file is still the one that the directory has under this name.
  bool in_place() const noexcept;
  /// Errors: io_error.
  caf::error raise(uint64_t value);

private:
  durable_mark(std::filesystem::path file, int fd, uint64_t value);

  std::filesystem::path file_;
  int fd_;
  uint64_t value_;
};

} // namespace ringmaster
