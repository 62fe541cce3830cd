#include "runtime/journal/small_database.hpp"

#include "runtime/memory/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ringmaster {

namespace {

namespace fs = std::filesystem;

/// Without it, RocksDB writes a log of its own into the database's directory.
class silent_logger final : public rocksdb::Logger {
public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

/// What a database says is for its owner: files that RocksDB makes, which it gives 0644, get 0600.
class private_files final : public rocksdb::FileSystemWrapper {
public:
  private_files() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "private_files"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& how,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* context) override {
    auto status = FileSystemWrapper::NewWritableFile(name, how, result, context);
    if (status.ok())
      ::chmod(name.c_str(), S_IRUSR | S_IWUSR); // in a directory of another owner it may fail, and be as before
    return status;
  }

  static rocksdb::Env* env() {
    static auto* const result = rocksdb::NewCompositeEnv(std::make_shared<private_files>()).release();
    return result; // outlives every database
  }
};

} // namespace

rocksdb::DBOptions small_database_options() {
  rocksdb::DBOptions opts;
  opts.env = private_files::env();
  opts.paranoid_checks = true;
  opts.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  opts.max_background_jobs = 1;
  opts.max_open_files = 32;
  opts.max_file_opening_threads = 1;
  opts.keep_log_file_num = 1;
  opts.info_log = std::make_shared<silent_logger>();
  opts.stats_dump_period_sec = 0;
  opts.stats_persist_period_sec = 0;
  opts.skip_stats_update_on_db_open = true;
  opts.manifest_preallocation_size = 64 << 10;
  return opts;
}

std::error_code make_private_directory(const fs::path& wanted) {
  const auto dir = wanted.has_filename() ? wanted : wanted.parent_path(); // "journal/"
  const auto made = [&] { return ::mkdir(dir.c_str(), S_IRWXU) == 0 || errno == EEXIST; };
  if (dir.empty() || made())
    return {};
  if (errno == ENOENT)
    if (auto problem = make_private_directory(dir.parent_path()))
      return problem;
  return made() ? std::error_code{} : std::error_code{errno, std::generic_category()};
}

// The kernel knows which process holds the lock. It is not asked if this process does, since closing the file would
// release the lock.
std::string lock_holder(const rocksdb::Status& status, const fs::path& dir) {
  const auto reason = status.ToString();
  if (reason.find("While lock file") == std::string::npos && reason.find("lock hold by") == std::string::npos)
    return {};
  if (reason.find("current process") != std::string::npos)
    return "by this process";
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const open_file file{::open((dir / "LOCK").c_str(), O_RDWR | O_CLOEXEC)};
  const bool is_known = file.descriptor >= 0 && ::fcntl(file.descriptor, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK
                        && lock.l_pid > 0;
  return is_known ? fmt::format("by process {}", lock.l_pid) : "by another process";
}

} // namespace ringmaster
