#include "training/computed/free_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

/// The file names of a version of the memory controller, and the line with page cache that is not in use.
struct control_group_files {
  const char *folder, *limit, *usage, *cache;
};
constexpr control_group_files version_1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                        "total_inactive_file"},
  version_2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

/// The number at the start of a file; nothing if there is none, as in "max".
std::optional<uint64_t> number_in(const fs::path& file) {
  uint64_t result = 0;
  return std::ifstream{file} >> result ? std::optional{result} : std::nullopt;
}

/// The number after this word in a file of lines "word number".
std::optional<uint64_t> number_after(const fs::path& file, std::string_view word) {
  std::ifstream in{file};
  std::string line;
  while (std::getline(in, line))
    if (line.starts_with(word) && line.find_first_of(" \t") == word.size())
      return std::strtoull(line.c_str() + word.size(), nullptr, 10);
  return std::nullopt;
}

/// What the limits of a group and of its parents leave.
uint64_t left_by(const fs::path& root, const control_group_files& of, fs::path group) {
  auto result = UINT64_MAX;
  for (bool more = true; more; group = group.parent_path()) {
    const auto folder = root / of.folder / group;
    const auto limit = number_in(folder / of.limit), usage = number_in(folder / of.usage);
    if (limit && usage) {
      const auto used = *usage - std::min(*usage, number_after(folder / "memory.stat", of.cache).value_or(0));
      result = std::min(result, *limit - std::min(*limit, used));
    }
    more = !group.empty();
  }
  return result;
}

/// The minimum over the groups in /proc/self/cgroup, one a line: "0::/path", "7:cpu,memory:/path".
uint64_t left_by_groups(const fs::path& root) {
  auto result = UINT64_MAX;
  std::ifstream in{root / "proc/self/cgroup"};
  std::string line;
  while (std::getline(in, line)) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos)
      continue;
    const auto controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const auto group = fs::path{line.substr(second + 1)}.relative_path();
    if (controllers == ",,")
      result = std::min(result, left_by(root, version_2, group));
    else if (controllers.find(",memory,") != controllers.npos)
      result = std::min(result, left_by(root, version_1, group));
  }
  return result;
}

uint64_t left_of_addresses(const fs::path& root) {
  rlimit limit{};
  const auto pages = number_in(root / "proc/self/statm");
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !pages)
    return UINT64_MAX;
  const auto used = *pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

} // namespace

uint64_t free_memory(const fs::path& root) {
  const auto kilobytes = number_after(root / "proc/meminfo", "MemAvailable:");
  const auto available = kilobytes ? *kilobytes * 1024 : UINT64_MAX;
  return std::min({available, left_by_groups(root), left_of_addresses(root)});
}

} // namespace ringmaster::training
