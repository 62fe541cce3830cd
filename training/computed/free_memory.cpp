#include "training/computed/free_memory.hpp"

#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

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

namespace {

/// Whether a rank of some larger world has fewer samples, or less of the model.
bool has_less_on_more(const training_job& job, const step_world& world, bool of_samples) {
  const auto& by = strategy_for(job, world.sides);
  const auto shape_of = [&](const step_world& x) { return by.shape(step_shape(job, x), x.ranks); };
  const auto less_of = [&](const mesh& a, const mesh& b) {
    const bool cut_by_data = by.gathers != sharded::nothing
                             && !(by.shards_in_groups && world.sides.parallel.shard_ranks != 0);
    return b.tensor * b.pipeline > a.tensor * a.pipeline
           || ((cut_by_data || (of_samples && job.all_at_once)) && b.data > a.data);
  };
  for (auto larger = world; larger.ranks < 2 * world.ranks;) {
    ++larger.ranks;
    if (can_train(job, larger) && less_of(shape_of(world), shape_of(larger)))
      return true;
  }
  return false;
}

std::vector<std::string> that_shard(training_job job, uint32_t world_size) {
  std::vector<std::string> result;
  for (auto* name : {"zero3", "fsdp", "tensor", "1f1b"}) {
    job.strategy = strategy_of(name);
    if (can_train(job, {world_size, {}}))
      result.emplace_back(name);
  }
  return result;
}

} // namespace

std::string memory_advice(const training_job& job, const step_world& world, bool of_samples) {
  std::vector<std::string> ways{"with a larger --device.memory-bytes"};
  if (job.strategy == nullptr)
    return choice_text(ways);
  const auto& by = strategy_for(job, world.sides);
  if (of_samples && step_shape(job, world).micro_batch > 1)
    ways.emplace_back("with a smaller --micro-batch");
  if (has_less_on_more(job, world, of_samples))
    ways.emplace_back("on more ranks");
  const bool is_whole = by.gathers == sharded::nothing && by.shares == sharing::none;
  if (of_samples || !is_whole || world.ranks == 1)
    return choice_text(ways);
  if (const auto others = that_shard(job, world.ranks); !others.empty())
    ways.push_back(fmt::format("under {}, which shard{} what takes it", choice_text(others),
                               others.size() == 1 ? "s" : ""));
  return choice_text(ways);
}

} // namespace ringmaster::training
