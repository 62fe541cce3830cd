#pragma once

#include <csignal>
#include <doctest/doctest.h>
#include <sys/resource.h>

namespace ringmaster::test {

/// As long as it lives no file of this process can grow beyond `bytes`: as on a full disk.
class file_size_limit {
public:
  explicit file_size_limit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  file_size_limit(const file_size_limit&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

} // namespace ringmaster::test
