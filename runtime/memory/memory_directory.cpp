#include "runtime/memory/memory_directory.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/file_size_limit.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ringmaster {

namespace fs = std::filesystem;

namespace {

constexpr auto prefix = "ringmaster-memory-";
constexpr auto lock_name = "lock", unnamed_lock = "lock.new"; ///< The latter until it is locked.

/// Where the directory may be made, the best first.
std::vector<fs::path> bases() {
  std::vector<fs::path> result{"/dev/shm"};
  if (auto temporary = std::getenv("TMPDIR"); temporary != nullptr && *temporary != '\0')
    result.push_back(temporary);
  result.push_back("/tmp");
  std::erase_if(result, [](auto& x) { return ::access(x.c_str(), W_OK) != 0; });
  return result;
}

/// A directory that was configured and does not exist may be a missing mount: what is made in its place
/// would lie on another disk.
caf::error check_configured(const fs::path& dir) {
  std::error_code problem;
  auto status = fs::status(dir, problem);
  std::string_view why;
  if (!fs::exists(status))
    why = problem && problem.value() != ENOENT ? std::string_view{std::strerror(problem.value())} : "it does not exist";
  else if (!fs::is_directory(status))
    why = "it is no directory";
  else if (::access(dir.c_str(), R_OK | W_OK | X_OK) != 0)
    why = "this process may not write there";
  else
    return caf::none;
  return make_error(errc::io_error, fmt::format("device.memory-dir is {}: {}; name a directory that is there, or leave "
                                                "it empty for /dev/shm",
                                                dir.string(), why));
}

uint64_t room_in(const fs::path& dir) {
  std::error_code problem;
  auto space = fs::space(dir, problem);
  return problem ? 0 : space.available;
}

caf::error no_room(const std::string& places, uint64_t bytes) {
  return make_error(errc::io_error,
                    fmt::format("the devices' memory files may grow to {} together, and there is room for "
                                "{}; fewer devices (device.count) or smaller ones (device.memory-bytes) need "
                                "less, device.memory-dir names another directory",
                                bytes_text(bytes), places));
}

caf::error check_file_size(uint64_t file_bytes) {
  if (file_bytes <= file_size_limit())
    return caf::none;
  return make_error(errc::io_error,
                    fmt::format("the memory file of each device needs {}, twice device.memory-bytes, and the limit on "
                                "the size of a file is {} for this process: raise it (ulimit -f unlimited), or make "
                                "devices smaller, such as --device.memory-bytes={}",
                                bytes_text(file_bytes), file_size_limit_text(),
                                (file_size_limit() - std::min<uint64_t>(file_size_limit(), 4096)) / 8192 * 4096));
}

/// Whether it was made long ago: its maker names the lock within a moment, or was killed.
bool is_old(const fs::path& directory) {
  std::error_code problem;
  const auto made = fs::last_write_time(directory, problem);
  return !problem && fs::file_time_type::clock::now() - made > std::chrono::minutes{1};
}

/// Removes what killed processes have left: directories whose lock is not held.
void sweep(const fs::path& base) {
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator{base, ignored}) {
    if (entry.path().filename().string().rfind(prefix, 0) != 0)
      continue;
    int lock = ::open((entry.path() / lock_name).c_str(), O_RDWR | O_CLOEXEC);
    const bool is_named = lock >= 0 || errno != ENOENT;
    if (!is_named && !is_old(entry.path()))
      continue;
    if (!is_named)
      lock = ::open((entry.path() / unnamed_lock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0)
      continue;
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0)
      fs::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

caf::error system_error(const fs::path& path, const char* what) {
  return make_error(errc::io_error, fmt::format("{}: cannot {} for device memory: {}; device.memory-dir names another "
                                                "directory",
                                                path.string(), what, file_problem_text(errno)));
}

} // namespace

caf::expected<memory_directory> memory_directory::open(const fs::path& configured, uint64_t bytes,
                                                       uint64_t file_bytes) {
  RETURN_ERROR(check_file_size(file_bytes));
  if (!configured.empty())
    RETURN_ERROR(check_configured(configured));
  fs::path base;
  std::vector<std::string> refused;
  for (auto& candidate : configured.empty() ? bases() : std::vector{fs::absolute(configured)}) {
    sweep(candidate);
    if (auto room = room_in(candidate); room < bytes) {
      refused.push_back(fmt::format("{} in {}", bytes_text(room), candidate.string()));
      continue;
    }
    base = candidate;
    break;
  }
  if (base.empty())
    return no_room(fmt::format("{}", fmt::join(refused, ", ")), bytes);
  memory_directory result;
  auto pattern = (base / (std::string{prefix} + "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return system_error(base, "make a directory");
  result.path_ = pattern;
  if (auto problem = result.lock()) {
    std::error_code ignored;
    fs::remove_all(result.path_, ignored);
    return problem;
  }
  return result;
}

caf::error memory_directory::lock() {
  ensure(!path_.empty(), "a directory that is locked was made");
  auto unlocked = path_ / unnamed_lock; // takes its name when it is locked: it is not swept in between
  const int fresh = ::open(unlocked.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fresh < 0 || ::flock(fresh, LOCK_EX | LOCK_NB) != 0
      || ::rename(unlocked.c_str(), (path_ / lock_name).c_str()) != 0) {
    auto problem = system_error(path_, "make a lock file");
    if (fresh >= 0)
      ::close(fresh);
    return problem;
  }
  if (const int former = std::exchange(lock_, fresh); former >= 0)
    ::close(former);
  return caf::none;
}

caf::expected<bool> memory_directory::keep() {
  static std::mutex one_at_a_time; // of this process's devices
  std::lock_guard guard{one_at_a_time};
  ensure(lock_ >= 0, "a directory that is kept is locked");
  struct stat held {
  }, named{}, found{};
  if (::fstat(lock_, &held) == 0 && ::stat((path_ / lock_name).c_str(), &named) == 0 && held.st_dev == named.st_dev
      && held.st_ino == named.st_ino)
    return false;
  RETURN_ERROR(check_configured(path_.parent_path()));
  const auto is_ours = [&] {
    return ::lstat(path_.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid();
  };
  if (::mkdir(path_.c_str(), 0700) != 0 && (errno != EEXIST || !is_ours()))
    return system_error(path_, "make the directory again");
  RETURN_ERROR(lock());
  return true;
}

memory_directory::memory_directory(memory_directory&& other) noexcept
  : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

memory_directory& memory_directory::operator=(memory_directory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

memory_directory::~memory_directory() {
  if (lock_ < 0)
    return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

caf::error shortage_of(const mapped_memory& memory) {
  auto& place = *memory.place();
  struct stat now {};
  if (::stat(place.file.c_str(), &now) != 0 || now.st_ino != place.inode || now.st_dev != place.file_system)
    return caf::none; // removed, or another one has its name: what is mapped is as it was
  auto bytes = static_cast<uint64_t>(now.st_size);
  const auto wanted = mapped_memory::file_bytes(place.bytes);
  if (bytes >= wanted)
    return caf::none;
  return make_error(errc::device_lost, fmt::format("{}: its memory file {} was cut: it has {} bytes, not {}",
                                                   text_of(memory.id()), place.file, bytes, wanted));
}

} // namespace ringmaster
