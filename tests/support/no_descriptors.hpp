#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace ringmaster::test {

/// As long as it lives, nothing in this process gets a descriptor.
class no_descriptors {
public:
  no_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto fewer = before_;
    fewer.rlim_cur = 512;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &fewer) == 0);
    for (int each; (each = ::dup(STDIN_FILENO)) >= 0;)
      held_.push_back(each);
  }
  no_descriptors(const no_descriptors&) = delete;
  ~no_descriptors() {
    for (auto each : held_)
      ::close(each);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }

private:
  rlimit before_{};
  std::vector<int> held_;
};

} // namespace ringmaster::test
