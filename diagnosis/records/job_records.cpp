#include "diagnosis/records/job_records.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::diagnosis {

std::string_view name_of(call_state x) {
  switch (x) {
    case call_state::scheduled: return "scheduled";
    case call_state::started: return "started";
    case call_state::completed: return "completed";
  }
  return {};
}

rank_records* job_records::find(uint32_t rank) {
  auto at = std::ranges::lower_bound(ranks, rank, {}, &rank_records::rank);
  return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const rank_records* job_records::find(uint32_t rank) const {
  auto at = std::ranges::lower_bound(ranks, rank, {}, &rank_records::rank);
  return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

std::string job_records::name_of_group(uint32_t group) const {
  auto& x = groups[group];
  if (x.description.empty() || x.description == "undefined" || x.description == x.name)
    return fmt::format("\"{}\"", x.name);
  return fmt::format("\"{}\" ({})", x.description, x.name);
}

std::string job_records::name_of_call(const rank_call& call) const {
  switch (call.form) {
    case call_form::creation: return "the creation of communicator " + name_of_group(call.group);
    case call_form::send:
    case call_form::receive:
      return fmt::format("{} {} index {} of {}", texts.text(call.name), call.form == call_form::send ? "to" : "from",
                         call.peer, name_of_group(call.group));
    case call_form::batch: return "a batch of sends and receives of " + name_of_group(call.group);
    case call_form::part:
    case call_form::collective: break;
  }
  return fmt::format("{} {} of {}", texts.text(call.name), call.sequence, name_of_group(call.group));
}

std::string job_records::text_of(const stack_frame& frame) const {
  auto file = texts.text(frame.file);
  return frame.line == 0 ? fmt::format("{} ({})", texts.text(frame.function), file)
                         : fmt::format("{} ({}:{})", texts.text(frame.function), file, frame.line);
}

int64_t job_records::latest_ns() const {
  int64_t result = 0;
  for (auto& rank : ranks) {
    result = std::max(result, rank.dumped_ns);
    for (auto& call : rank.calls)
      result = std::max({result, call.created_ns, call.started_ns, call.completed_ns});
  }
  return result;
}

uint32_t job_records::group_of(process_group x) {
  auto [from, to] = groups_by_name_.equal_range(x.name);
  for (auto at = from; at != to; ++at)
    if (groups[at->second].members == x.members)
      return at->second;
  auto index = static_cast<uint32_t>(groups.size());
  groups_by_name_.emplace(x.name, index);
  groups.push_back(std::move(x));
  return index;
}

namespace {

std::vector<std::string> runs_of(const std::vector<uint32_t>& ascending) {
  constexpr size_t runs_max = 12;
  std::vector<std::string> runs;
  for (size_t i = 0; i < ascending.size();) {
    auto end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1)
      ++end;
    if (runs.size() == runs_max) {
      runs.push_back(fmt::format("{} more", ascending.size() - i));
      break;
    }
    if (end - i > 2) {
      runs.push_back(fmt::format("{}-{}", ascending[i], ascending[end - 1]));
      i = end;
    } else {
      runs.push_back(std::to_string(ascending[i]));
      ++i;
    }
  }
  return runs;
}

} // namespace

std::string list_of_ranks(const std::vector<uint32_t>& ascending) {
  return fmt::format("{}", fmt::join(runs_of(ascending), ", "));
}

std::string ranks_text(const std::vector<uint32_t>& ascending) {
  auto runs = runs_of(ascending);
  if (ascending.size() == 1)
    return "rank " + runs.front();
  if (runs.size() < 2)
    return "ranks " + list_of_ranks(ascending);
  auto last = runs.back();
  runs.pop_back();
  return fmt::format("ranks {} and {}", fmt::join(runs, ", "), last);
}

std::string time_text(int64_t unix_ns) {
  const std::chrono::sys_time<std::chrono::seconds> second{std::chrono::seconds{unix_ns / 1'000'000'000}};
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03} UTC", fmt::gmtime(second.time_since_epoch().count()),
                     unix_ns / 1'000'000 % 1000);
}

} // namespace ringmaster::diagnosis
