#include "training/computed/free_memory.hpp"

#include "tests/support/file_content.hpp"
#include "tests/support/temporary_directory.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace ringmaster::training;

namespace {

struct pretended_system {
  temporary_directory root;

  void write(const std::string& file, const std::string& content) const {
    std::filesystem::create_directories((root.path() / file).parent_path());
    write_content(root.path() / file, content);
  }
  uint64_t free() const { return free_memory(root.path()); }
};

} // namespace

TEST_CASE_FIXTURE(pretended_system, "free memory: the least of what the host has and of what control groups leave") {
  CHECK(free() == UINT64_MAX);
  write("proc/meminfo", "MemTotal:       16000 kB\nMemFree:  10 kB\nMemAvailable:    5000 kB\n");
  CHECK(free() == 5000 * 1024);
  write("proc/self/cgroup", "0::/jobs/one\n");
  write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/one/memory.current", "100\n");
  CHECK(free() == 5000 * 1024);
  write("sys/fs/cgroup/jobs/memory.max", "1000000\n"); // of the group that it is in
  write("sys/fs/cgroup/jobs/memory.current", "900000\n");
  CHECK(free() == 100'000);
  write("sys/fs/cgroup/jobs/memory.stat", "anon 5\ninactive_file_x 7\ninactive_file 50000\n"); // can be dropped
  CHECK(free() == 150'000);
  write("sys/fs/cgroup/memory.max", "3000"); // a container's own
  write("sys/fs/cgroup/memory.current", "4000");
  CHECK(free() == 0);
}

TEST_CASE_FIXTURE(pretended_system, "free memory: control groups of version 1 count, other controllers do not") {
  write("proc/self/cgroup", "12:cpu,cpuacct:/a\n7:hugetlb,memory:/b\n0::/c\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "0");
  CHECK(free() == UINT64_MAX);
  write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "7000");
  write("sys/fs/cgroup/memory/b/memory.usage_in_bytes", "5000");
  write("sys/fs/cgroup/memory/b/memory.stat", "total_inactive_file 300\n");
  CHECK(free() == 2300);
}

TEST_CASE("free memory: the process's own limit of addresses counts") {
  constexpr uint64_t more = UINT64_C(64) << 20;
  CHECK(free_memory() > 0);
  const auto child = ::fork(); // whose limit it is
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages;
    const rlimit limit{pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + more, RLIM_INFINITY};
    const bool is_limited = ::setrlimit(RLIMIT_AS, &limit) == 0;
    const auto there = free_memory();
    ::_exit(is_limited && there <= more && there > 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
