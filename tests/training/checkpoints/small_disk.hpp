#pragma once

#include "tests/support/temporary_directory.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringmaster::test {

namespace detail {

/// A mount namespace of this process's own, with an empty file system of that size. False: the kernel refuses.
inline bool mount_small_disk(const std::filesystem::path& at, uint64_t bytes) {
  const auto user = std::to_string(::getuid()), group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return false;
  std::ofstream{"/proc/self/setgroups"} << "deny";
  std::ofstream{"/proc/self/uid_map"} << "0 " + user + " 1";
  std::ofstream{"/proc/self/gid_map"} << "0 " + group + " 1";
  const auto size = "size=" + std::to_string(bytes);
  return ::mount("none", at.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, size.c_str()) == 0;
}

} // namespace detail

/// Calls `what`, in a process of its own, with the path of a file system of `bytes` bytes, which no other process sees.
/// Returns what it returns; nothing where this kernel lets no test mount a file system.
inline std::optional<std::string> on_small_disk(uint64_t bytes,
                                                const std::function<std::string(const std::filesystem::path&)>& what) {
  constexpr int not_mounted = 77;
  temporary_directory at;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    std::abort();
  const auto child = ::fork();
  if (child == 0) {
    if (!detail::mount_small_disk(at.path(), bytes))
      ::_exit(not_mounted);
    std::string text;
    try {
      text = what(at.path());
    } catch (const std::exception& problem) {
      text = problem.what();
    }
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string result;
  char some[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], some, sizeof some)) > 0 || (count < 0 && errno == EINTR);)
    result.append(some, static_cast<size_t>(count > 0 ? count : 0));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_mounted)
    return std::nullopt;
  return result;
}

} // namespace ringmaster::test
