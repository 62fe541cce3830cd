#include "runtime/memory_directory.hpp"

#include "messages/errc.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace ringmaster {

namespace fs = std::filesystem;

namespace {

constexpr auto prefix = "ringmaster-memory-";
constexpr auto lock_name = "lock";

fs::path fresh_base() {
  if (::access("/dev/shm", W_OK) == 0)
    return "/dev/shm";
  auto temporary = std::getenv("TMPDIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

/// Removes what killed processes have left: directories whose lock nobody holds.
void sweep(const fs::path& base) {
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator{base, ignored}) {
    if (entry.path().filename().string().rfind(prefix, 0) != 0)
      continue;
    int lock = ::open((entry.path() / lock_name).c_str(), O_RDWR | O_CLOEXEC);
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
                                                path.string(), what, std::strerror(errno)));
}

} // namespace

caf::expected<memory_directory> memory_directory::open(const fs::path& configured) {
  memory_directory result;
  if (!configured.empty()) {
    std::error_code problem;
    fs::create_directories(configured, problem);
    errno = problem.value();
    if (problem)
      return system_error(configured, "make a directory");
    result.path_ = configured;
    return result;
  }
  auto base = fresh_base();
  sweep(base);
  auto pattern = (base / (std::string{prefix} + "XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return system_error(base, "make a directory");
  result.path_ = pattern;
  auto unlocked = result.path_ / "lock.new"; // takes its name when it is locked: nobody sweeps it in between
  result.lock_ = ::open(unlocked.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (result.lock_ < 0 || ::flock(result.lock_, LOCK_EX | LOCK_NB) != 0
      || ::rename(unlocked.c_str(), (result.path_ / lock_name).c_str()) != 0)
    return system_error(result.path_, "make a lock file");
  return result;
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

} // namespace ringmaster
