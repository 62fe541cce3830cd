// Writes the dumps of a large job that hangs: dump_writer DIR RANKS ENTRIES
// 8 ranks a tensor-parallel group, the others data parallel; rank RANKS / 3 never comes to the last call. For the
// figure in docs/diagnose.md.
#include "diagnosis/writers/flight_recorder_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

using namespace ringmaster::diagnosis;

constexpr uint32_t tensor = 8;

void add_groups(job_records& job, uint32_t ranks) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < ranks; ++i)
    all.push_back(i);
  job.groups.push_back({"0", "default_pg", all});
  for (uint32_t i = 0; i < ranks / tensor; ++i)
    job.groups.push_back({std::to_string(1 + i), "tensor", {all.begin() + i * tensor, all.begin() + (i + 1) * tensor}});
  for (uint32_t i = 0; i < tensor; ++i) {
    process_group group{std::to_string(1 + ranks / tensor + i), "data", {}};
    for (auto rank = i; rank < ranks; rank += tensor)
      group.members.push_back(rank);
    job.groups.push_back(std::move(group));
  }
}

void add_calls(job_records& job, rank_records& rank, uint32_t ranks, uint32_t entries) {
  std::vector<uint64_t> next(3, 1000);
  rank.has_calls = rank.reports_starts = rank.wrapped = true;
  rank.calls.clear();
  const bool stops = rank.rank == ranks / 3;
  for (uint32_t i = 0; i < entries - (stops ? 1 : 0); ++i) {
    const auto kind = i + 1 == entries ? 0 : i % 40 == 39 ? 2 : 1;
    rank_call call;
    call.group = kind == 0 ? 0 : kind == 1 ? 1 + rank.rank / tensor : 1 + ranks / tensor + rank.rank % tensor;
    call.sequence = ++next[static_cast<size_t>(kind)];
    call.name = job.texts.of(kind == 2 ? "_reduce_scatter_base" : "all_reduce");
    call.shape = 1 + i % 4;
    call.stack = 1 + i % 8;
    call.created_ns = 1'772'366'400'000'000'000 + int64_t{i} * 2'000'000;
    call.state = i + 1 == entries ? call_state::started : call_state::completed;
    call.started_ns = call.created_ns + 100'000;
    call.completed_ns = call.state == call_state::completed ? call.created_ns + 900'000 : 0;
    rank.calls.push_back(call);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4)
    return 2;
  const auto ranks = static_cast<uint32_t>(std::atoi(argv[2])), entries = static_cast<uint32_t>(std::atoi(argv[3]));
  if (ranks < 2 * tensor || ranks % tensor != 0 || entries < 2)
    return 2;
  job_records job;
  add_groups(job, ranks);
  for (uint64_t i = 0; i < 4; ++i) {
    auto sizes = job.texts.of(fmt::format("[[{}, 8192]]", 4096 << i)), type = job.texts.of("BFloat16");
    job.shapes.push_back({sizes, sizes, type, type, 33'554'432u << i, 33'554'432u << i});
  }
  for (uint32_t i = 0; i < 8; ++i) {
    auto& stack = job.stacks.emplace_back();
    for (uint32_t depth = 0; depth < 12; ++depth)
      stack.push_back({job.texts.of(fmt::format("forward_{}", depth)), job.texts.of("megatron/core/layers.py"),
                       100 * i + depth});
  }
  std::filesystem::create_directories(argv[1]);
  rank_records rank;
  for (rank.rank = 0; rank.rank < ranks; ++rank.rank) {
    rank.host = fmt::format("node{}", rank.rank / 8);
    add_calls(job, rank, ranks, entries);
    std::ofstream file{std::filesystem::path{argv[1]} / dump_name(rank.rank), std::ios::binary};
    file << flight_recorder_dump(job, rank);
    if (!file.flush())
      return 1;
  }
  return 0;
}
