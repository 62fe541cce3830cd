#include "runtime/journal/rocksdb_directory.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/small_database.hpp"
#include "runtime/text/file_size_limit.hpp"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ringmaster {
namespace {

namespace fs = std::filesystem;

const std::array<std::string, 4> family_names{rocksdb::kDefaultColumnFamilyName, "timeline", "operations", "meta"};

rocksdb::DBOptions database_options() {
  auto opts = small_database_options();
  opts.atomic_flush = true; // all families are written together
  opts.max_open_files = 64;
  opts.max_total_wal_size = 16 << 20;
  return opts;
}

rocksdb::ColumnFamilyOptions family_options() {
  rocksdb::ColumnFamilyOptions opts;
  opts.write_buffer_size = 4 << 20;
  opts.max_write_buffer_number = 2;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(512 << 10, 0);
  opts.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return opts;
}

std::vector<rocksdb::ColumnFamilyDescriptor> families() {
  std::vector<rocksdb::ColumnFamilyDescriptor> result;
  auto opts = family_options();
  for (auto& name : family_names)
    result.emplace_back(name, opts);
  return result;
}

bool is_of_journal(const fs::path& file) {
  const auto name = file.filename().string();
  return file.extension() == ".sst" || file.extension() == ".log" || name == "CURRENT" || name == "IDENTITY"
         || name == "LOCK" || name == durable_mark::file_name || name.starts_with("MANIFEST-")
         || name.starts_with("OPTIONS-");
}

/// An earlier version gave files 0644, and RocksDB gives that to its lock.
void make_private(const fs::path& dir) {
  std::error_code ec; // of a file that RocksDB deletes meanwhile
  for (fs::directory_iterator i{dir, ec}, end; !ec && i != end; i.increment(ec))
    if (std::error_code ignored; is_of_journal(i->path()) && i->is_regular_file(ignored) && !i->is_symlink(ignored))
      fs::permissions(i->path(), fs::perms::owner_read | fs::perms::owner_write, ignored);
}

// RocksDB creates data files only after CURRENT.
bool has_data_files(const fs::path& dir) {
  std::error_code ec;
  for (fs::directory_iterator i{dir, ec}, end; !ec && i != end; i.increment(ec))
    if (i->path().extension() == ".sst" || i->path().extension() == ".log")
      return true;
  return false;
}

} // namespace

caf::expected<std::unique_ptr<rocksdb_directory>> rocksdb_directory::open(const fs::path& dir, uint64_t now_ns) {
  std::unique_ptr<rocksdb_directory> self{new rocksdb_directory{dir}};
  auto ec = make_private_directory(dir);
  if (ec || !fs::is_directory(dir, ec))
    return make_error(errc::io_error, fmt::format("cannot create the journal's directory '{}': {}", dir.string(),
                                                  ec ? ec.message() : "a file has this name"));
  RETURN_ERROR(self->inspect_files(true));
  RETURN_ERROR(self->open_for_writing());
  RETURN_ERROR(self->check_version(now_ns));
  return self;
}

caf::expected<std::unique_ptr<rocksdb_directory>> rocksdb_directory::open_read_only(const fs::path& dir) {
  std::unique_ptr<rocksdb_directory> self{new rocksdb_directory{dir}};
  std::error_code ec;
  if (!fs::is_directory(dir, ec))
    return invalid(fmt::format("there is no journal in '{}': {}", dir.string(),
                               fs::exists(dir, ec) ? "it is no directory" : "there is no such directory"));
  RETURN_ERROR(self->inspect_files(false));
  RETURN_ERROR(self->open_for_reading());
  RETURN_ERROR(self->check_version(0));
  return self;
}

bool rocksdb_directory::has_log(const fs::path& dir) {
  std::error_code ec;
  for (fs::directory_iterator i{dir, ec}, end; !ec && i != end; i.increment(ec))
    if (i->path().extension() == ".log" && i->file_size(ec) > 0)
      return fs::exists(dir / "CURRENT", ec);
  return false;
}

rocksdb_directory::~rocksdb_directory() {
  for (auto* family : families_)
    db_->DestroyColumnFamilyHandle(family);
}

// Without these checks RocksDB would create a new database if CURRENT is missing, and add our families to a database
// that is no journal.
caf::error rocksdb_directory::inspect_files(bool writing) const {
  std::error_code ec;
  TRY(mark, durable_mark::read(path_));
  if (fs::exists(path_ / "CURRENT", ec)) {
    if (!mark->has_value())
      return invalid(fmt::format("there is no journal in '{}': the RocksDB database there has no file {}",
                                 path_.string(), durable_mark::file_name));
    return inspect_families(writing, mark->value_or(0));
  }
  if (mark->value_or(0) > 0 || (mark->has_value() && has_data_files(path_)))
    return corrupt("its file CURRENT is missing");
  if (!writing)
    return invalid(fmt::format("there is no journal in '{}': it has no file CURRENT", path_.string()));
  return caf::none;
}

caf::error rocksdb_directory::inspect_families(bool writing, uint64_t durable) const {
  std::vector<std::string> names;
  auto status = rocksdb::DB::ListColumnFamilies(database_options(), path_.string(), &names);
  if (!status.ok())
    return error_of(status, "open");
  for (auto& name : names)
    if (std::find(family_names.begin(), family_names.end(), name) == family_names.end())
      return make_error(
        errc::wrong_version,
        fmt::format("journal '{}' has a family '{}' that is not in format {} of this program: a later version wrote it",
                    path_.string(), name, format_version));
  if (names.size() == family_names.size())
    return caf::none;
  if (durable > 0)
    return corrupt("it has records, but not all of its families");
  return writing ? caf::none
                 : invalid(fmt::format("there is no journal in '{}': its creation was cut short, or is going on",
                                       path_.string()));
}

caf::error rocksdb_directory::open_for_writing() {
  auto opts = database_options();
  opts.create_if_missing = true;
  opts.create_missing_column_families = true;
  TRY(mark, durable_mark::open(path_));
  mark_ = std::move(*mark);
  rocksdb::DB* db = nullptr;
  auto status = rocksdb::DB::Open(opts, path_.string(), families(), &families_, &db);
  if (const auto holder = lock_holder(status, path_); !holder.empty())
    return make_error(errc::in_use,
                      fmt::format("journal '{}' is in use {}: stop that one first, or choose another directory",
                                  path_.string(), holder));
  make_private(path_);
  return adopt(status, db);
}

caf::error rocksdb_directory::open_for_reading() {
  auto opts = database_options();
  opts.max_open_files = -1; // holds every file, so that a living writer may delete it
  rocksdb::DB* db = nullptr;
  auto status = rocksdb::DB::OpenForReadOnly(opts, path_.string(), families(), &families_, &db);
  return adopt(status, db);
}

caf::error rocksdb_directory::adopt(const rocksdb::Status& status, rocksdb::DB* db) {
  ensure(db_ == nullptr, "a directory is opened once");
  ensure(status.ok() == (db != nullptr), "a database is open exactly if RocksDB reports success");
  db_.reset(db);
  if (status.ok()) {
    ensure(families_.size() == family_names.size(), "an open database has all of its families");
    return caf::none;
  }
  families_.clear();
  return error_of(status, "open");
}

caf::error rocksdb_directory::check_version(uint64_t now_ns) {
  std::string version;
  auto status = db_->Get({}, meta(), "format_version", &version);
  if (status.ok()) {
    if (version == format_version)
      return caf::none;
    return make_error(
      errc::wrong_version,
      fmt::format("journal '{}' has format {}, and this program reads and writes format {}: read it with the version "
                  "of Ringmaster that wrote it, or move the directory away to begin a new one",
                  path_.string(), version, format_version));
  }
  if (!status.IsNotFound())
    return error_of(status, "read");
  std::unique_ptr<rocksdb::Iterator> records{db_->NewIterator({}, timeline())};
  records->SeekToFirst();
  if (records->Valid() || !records->status().ok())
    return corrupt("it has records, but no format version");
  if (!mark_)
    return caf::none; // its creation was interrupted, or is in progress
  rocksdb::WriteBatch batch;
  batch.Put(meta(), "format_version", rocksdb::Slice{format_version.data(), format_version.size()});
  batch.Put(meta(), "created_ns", std::to_string(now_ns));
  rocksdb::WriteOptions opts;
  opts.sync = true;
  status = db_->Write(opts, &batch);
  return status.ok() ? caf::none : error_of(status, "write to");
}

namespace {

/// RocksDB reports the system's error only within its own text.
std::string advice_on(const rocksdb::Status& status) {
  const bool too_large = status.ToString().find(std::strerror(EFBIG)) != std::string::npos;
  return too_large && file_size_limit() != UINT64_MAX ? fmt::format(
           "; the limit on the size of a file is {} for this process, and `ulimit -f unlimited` raises it",
           file_size_limit_text())
                                                      : std::string{};
}

} // namespace

caf::error rocksdb_directory::corrupt(std::string_view reason) const {
  return malformed(fmt::format("journal '{}' is corrupt: {}. Move the directory away to begin a new one",
                               path_.string(), reason));
}

caf::error rocksdb_directory::error_of(const rocksdb::Status& status, std::string_view doing) const {
  if (status.IsCorruption() || status.IsPathNotFound() || status.IsNotFound())
    return corrupt(status.ToString());
  return make_error(errc::io_error, fmt::format("cannot {} journal '{}': {}{}", doing, path_.string(),
                                                status.ToString(), advice_on(status)));
}

} // namespace ringmaster
