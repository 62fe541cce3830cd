#pragma once

#include <unistd.h>

#include <utility>

namespace ringmaster::launch {

/// Owns a file descriptor; -1 is none.
class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  void close() {
    if (fd_ >= 0)
      ::close(fd_); // not again on EINTR: Linux has closed it by then
    fd_ = -1;
  }

private:
  int fd_ = -1;
};

} // namespace ringmaster::launch
