#include "runtime/epochs/wait_chain.hpp"

#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace ringmaster {

namespace {

using proto::CommunicatorStatus;

const CommunicatorStatus::Operation* running_operation(const CommunicatorStatus& x) {
  return x.operations_size() > 0 && x.operations(0).phase() == CommunicatorStatus::Operation::RUNNING ? &x.operations(0)
                                                                                                      : nullptr;
}

bool is_in_trouble(const CommunicatorStatus::Rank& x, std::chrono::nanoseconds still) {
  return x.late() > 0 || x.silent_ns() >= static_cast<uint64_t>(still.count());
}

/// By rank, whom it waits for. None for a rank in trouble, whose last answer is outdated.
using wait_edges = std::vector<std::set<uint32_t>>;

wait_edges edges_of(const CommunicatorStatus& x, std::chrono::nanoseconds still) {
  wait_edges result(static_cast<size_t>(x.ranks_size()));
  for (int rank = 0; rank < x.ranks_size(); ++rank)
    if (!is_in_trouble(x.ranks(rank), still))
      for (auto other : x.ranks(rank).waits_for())
        if (other < result.size() && other != static_cast<uint32_t>(rank))
          result[static_cast<size_t>(rank)].insert(other);
  return result;
}

/// Ranks that others wait for and that wait for none.
std::vector<uint32_t> ends_of(const wait_edges& edges) {
  std::set<uint32_t> waited_for;
  for (auto& each : edges)
    waited_for.insert(each.begin(), each.end());
  std::vector<uint32_t> result;
  for (auto rank : waited_for)
    if (edges[rank].empty())
      result.push_back(rank);
  return result;
}

/// Ranks of different processes that wait for each other.
std::set<uint32_t> split_pairs(const wait_edges& edges, std::span<const rank_device> ranks) {
  std::set<uint32_t> result;
  for (uint32_t a = 0; a < edges.size(); ++a)
    for (auto b : edges[a])
      if (a < b && edges[b].contains(a) && ranks[a].metadata.node() != ranks[b].metadata.node())
        result.insert({a, b});
  return result;
}

void add_culprit(proto::Verdict& to, const CommunicatorStatus& status, uint32_t rank) {
  auto& culprit = *to.add_culprits();
  culprit.set_rank(rank);
  culprit.set_device_id(status.ranks(static_cast<int>(rank)).device_id());
}

} // namespace

proto::Verdict waits_in(const CommunicatorStatus& status) {
  proto::Verdict result;
  const auto* op = running_operation(status);
  if (op == nullptr)
    return result;
  result.set_sequence(op->sequence());
  result.set_operation(std::string{name_of(op->collective().kind())});
  for (int rank = 0; rank < status.ranks_size(); ++rank) {
    auto& about = status.ranks(rank);
    if (about.waits_for().empty())
      continue;
    auto& wait = *result.add_waits();
    wait.set_rank(static_cast<uint32_t>(rank));
    *wait.mutable_waits_for() = about.waits_for();
    wait.set_what(about.doing());
  }
  return result;
}

void note_step(proto::Verdict& x, const CommunicatorStatus& status, uint32_t rank) {
  if (static_cast<int>(rank) >= status.ranks_size())
    return;
  auto& latest = status.ranks(static_cast<int>(rank)).latest();
  if (x.sequence() == 0 || latest.sequence() != x.sequence() || latest.rounds() == 0)
    return;
  x.set_round(latest.round());
  x.set_rounds(latest.rounds());
}

proto::Verdict cause_in(const CommunicatorStatus& status, std::span<const rank_device> ranks,
                        std::chrono::nanoseconds still) {
  ensure(ranks.size() == static_cast<size_t>(status.ranks_size()), "a status has its communicator's ranks");
  auto result = waits_in(status);
  const auto edges = edges_of(status, still);
  const bool is_still = status.still_ns() >= static_cast<uint64_t>(still.count());
  auto ends = ends_of(edges);
  const auto of = [&](uint32_t rank) -> auto& {
    return status.ranks(static_cast<int>(rank));
  };
  if (std::any_of(ends.begin(), ends.end(), [&](auto x) { return is_in_trouble(of(x), still); })) {
    std::erase_if(ends, [&](auto x) { return !is_in_trouble(of(x), still); });
    result.set_kind(proto::Verdict::HUNG);
  } else if (std::any_of(ends.begin(), ends.end(), [&](auto x) { return of(x).has_slow(); })) {
    std::erase_if(ends, [&](auto x) { return !of(x).has_slow(); });
    result.set_kind(proto::Verdict::SLOW);
  } else if (!ends.empty()) {
    result.set_kind(is_still ? proto::Verdict::HUNG : proto::Verdict::SLOW);
  } else if (const auto pairs = split_pairs(edges, ranks); is_still && !pairs.empty()) {
    ends.assign(pairs.begin(), pairs.end());
    result.set_kind(proto::Verdict::UNREACHABLE);
  }
  for (auto rank : ends)
    add_culprit(result, status, rank);
  if (!ends.empty())
    note_step(result, status, ends.front());
  return result;
}

} // namespace ringmaster
