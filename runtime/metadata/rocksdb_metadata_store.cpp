#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/journal/small_database.hpp"
#include "runtime/metadata/cluster_metadata.hpp"
#include "runtime/metadata/metadata_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringmaster {

namespace {

namespace fs = std::filesystem;

/// A few thousand small entries.
rocksdb::Options store_options() {
  rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = 1 << 20;
  rocksdb::Options opts{small_database_options(), family};
  opts.create_if_missing = true;
  return opts;
}

class rocksdb_store final : public metadata_store {
public:
  explicit rocksdb_store(options opts) : options_(std::move(opts)) {}
  ~rocksdb_store() override { close(); }

  caf::error open() {
    auto ec = make_private_directory(options_.dir);
    if (ec || !fs::is_directory(options_.dir, ec))
      return make_error(errc::io_error, fmt::format("cannot create the directory '{}' of the coordinator's store: {}",
                                                    options_.dir.string(), ec ? ec.message() : "a file has this name"));
    RETURN_ERROR(check_is_ours());
    dir_ = ::open(options_.dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_ < 0)
      return make_error(errc::io_error, fmt::format("cannot open the directory '{}' of the coordinator's store: {}",
                                                    options_.dir.string(), std::strerror(errno)));
    rocksdb::DB* db = nullptr;
    const auto status = rocksdb::DB::Open(store_options(), options_.dir.string(), &db);
    if (const auto holder = lock_holder(status, options_.dir); !holder.empty())
      return make_error(errc::in_use, fmt::format("the coordinator's store '{}' is in use {}: a cluster has one "
                                                  "coordinator; end that one first, or choose another directory",
                                                  options_.dir.string(), holder));
    if (!status.ok())
      return error_of(status, "open");
    db_.reset(db);
    return caf::none;
  }

  caf::expected<entries> load() override {
    ensure(db_ != nullptr, "a store is read after it was opened");
    entries result;
    std::unique_ptr<rocksdb::Iterator> i{db_->NewIterator({})};
    for (i->SeekToFirst(); i->Valid(); i->Next())
      result.emplace(i->key().ToString(), i->value().ToString());
    if (!i->status().ok())
      return error_of(i->status(), "read");
    return result;
  }

  caf::error commit(std::span<const metadata_change> changes) override {
    if (db_ == nullptr)
      RETURN_ERROR(write_anew());
    rocksdb::WriteBatch batch;
    for (auto& x : changes)
      if (x.value)
        batch.Put(x.key, *x.value);
      else
        batch.Delete(x.key);
    rocksdb::WriteOptions how; // a batch that waits for the disk waits for all before it as well
    how.sync = options_.sync || std::ranges::any_of(changes, [](auto& x) { return metadata_key::is_of_run(x.key); });
    auto status = db_->Write(how, &batch);
    if (status.IsIOError()) { // RocksDB refuses all writes from then on, until it is asked to resume
      db_->Resume();
      status = db_->Write(how, &batch);
    }
    return status.ok() ? look_after() : error_of(status, "write to");
  }

  caf::error look_after() override { return db_ != nullptr && is_in_place() ? caf::error{} : write_anew(); }

  bool has_files() const override { return ::access((options_.dir / "CURRENT").c_str(), F_OK) == 0; }
  bool waits() const override { return true; }

private:
  void close() {
    db_.reset();
    if (dir_ >= 0)
      ::close(std::exchange(dir_, -1));
  }

  bool is_in_place() const {
    struct stat open_one {
    }, named_one{};
    return ::fstat(dir_, &open_one) == 0 && ::stat(options_.dir.c_str(), &named_one) == 0
           && open_one.st_ino == named_one.st_ino && open_one.st_dev == named_one.st_dev && has_files();
  }

  /// The directory was removed: RocksDB still has the files that are open, and a database of the same name is made of
  /// what is in them. If that fails it is tried again at the next use.
  caf::error write_anew() {
    if (db_ != nullptr) {
      TRY(all, load());
      removed_ = std::move(*all);
      close();
    }
    auto problem = open();
    if (!problem) {
      rocksdb::WriteBatch batch;
      for (auto& [key, value] : removed_)
        batch.Put(key, value);
      rocksdb::WriteOptions how;
      how.sync = options_.sync;
      if (const auto status = db_->Write(how, &batch); !status.ok())
        problem = error_of(status, "write to");
    }
    if (problem) {
      close();
      return make_error(errc::io_error, fmt::format("the coordinator's store '{}' was removed while it is in use, and "
                                                    "is in memory only: {}",
                                                    options_.dir.string(), render(problem)));
    }
    spdlog::warn("the coordinator's store '{}' was removed while it is in use: it was written anew",
                 options_.dir.string());
    removed_.clear();
    return caf::none;
  }

  /// RocksDB would add its files to those of any other program.
  caf::error check_is_ours() const {
    std::error_code ec;
    if (fs::exists(options_.dir / "CURRENT", ec))
      return caf::none;
    for (fs::directory_iterator i{options_.dir, ec}, end; !ec && i != end; i.increment(ec)) {
      const auto kind = i->path().extension();
      if (kind == ".sst" || kind == ".log")
        return malformed(
          fmt::format("the coordinator's store '{}' is corrupt: its file CURRENT is missing. Restore the "
                      "directory from a copy, or move it away to begin a new cluster",
                      options_.dir.string()));
    }
    return caf::none;
  }

  caf::error error_of(const rocksdb::Status& status, std::string_view doing) const {
    if (status.IsCorruption() || status.IsNotFound())
      return malformed(fmt::format("the coordinator's store '{}' is corrupt: {}. Restore the directory from a copy, or "
                                   "move it away to begin a new cluster",
                                   options_.dir.string(), status.ToString()));
    return make_error(errc::io_error, fmt::format("cannot {} the coordinator's store '{}': {}", doing,
                                                  options_.dir.string(), status.ToString()));
  }

  const options options_;
  int dir_ = -1; ///< The directory that was opened.
  std::unique_ptr<rocksdb::DB> db_;
  entries removed_; ///< While it is nowhere else.
};

} // namespace

caf::expected<std::unique_ptr<metadata_store>> metadata_store::open(const options& opts) {
  auto result = std::make_unique<rocksdb_store>(opts);
  RETURN_ERROR(result->open());
  return std::unique_ptr<metadata_store>{std::move(result)};
}

} // namespace ringmaster
