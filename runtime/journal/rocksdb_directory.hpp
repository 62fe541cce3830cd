#pragma once

#include "messages/version.hpp"
#include "runtime/journal/durable_mark.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>
#include <rocksdb/db.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// An open database in the journal's format, and its error messages. Only the journal includes this file, since it
/// includes RocksDB's headers.
///
/// Families: `timeline` (big-endian index -> Record), `operations` (big-endian communicator, sequence ->
/// OperationState), `meta` ("format_version", "created_ns" as text; "state" -> JournalState).
class rocksdb_directory {
public:
  static constexpr std::string_view format_version = journal_format;

  /// Opens it for writing; creates one with the time `now_ns` if there is none. Errors: those of journal_store::open.
  static caf::expected<std::unique_ptr<rocksdb_directory>> open(const std::filesystem::path& dir, uint64_t now_ns);
  /// Opens it for reading; changes no file.
  static caf::expected<std::unique_ptr<rocksdb_directory>> open_read_only(const std::filesystem::path& dir);

  /// Whether there is a write-ahead log that is not empty: its owner is alive, or was killed.
  static bool has_log(const std::filesystem::path& dir);

  rocksdb_directory(const rocksdb_directory&) = delete;
  rocksdb_directory& operator=(const rocksdb_directory&) = delete;
  ~rocksdb_directory();

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* timeline() const { return families_[1]; }
  rocksdb::ColumnFamilyHandle* operations() const { return families_[2]; }
  rocksdb::ColumnFamilyHandle* meta() const { return families_[3]; }
  const std::filesystem::path& path() const { return path_; }
  /// The number of durable records; null if opened for reading.
  durable_mark* mark() { return mark_ ? &*mark_ : nullptr; }

  /// errc::corrupt with the reason.
  caf::error corrupt(std::string_view reason) const;
  /// A failed access as an error; `doing`: "write to".
  caf::error error_of(const rocksdb::Status& status, std::string_view doing) const;

private:
  explicit rocksdb_directory(std::filesystem::path path) : path_(std::move(path)) {}
  caf::error open_for_writing();
  caf::error open_for_reading();
  caf::error adopt(const rocksdb::Status& status, rocksdb::DB* db);
  caf::error inspect_files(bool writing) const;
  caf::error inspect_families(bool writing, uint64_t durable) const;
  caf::error check_version(uint64_t now_ns);

  std::filesystem::path path_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::optional<durable_mark> mark_;
};

} // namespace ringmaster
