#include "runtime/simulation/timeline.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// A point of the chain: the next part waited for `activity`, until `until`.
struct waited_for {
  uint32_t activity = activity::none;
  picoseconds until = 0;
};

/// What the work of a rank waited for: its own message's arrival, or other work of the rank.
waited_for before_work(const timeline& times, uint32_t index, picoseconds start) {
  const auto& x = times.graph.activities[index];
  return {x.is_local() ? x.cause : times.reduction_cause[index], start};
}

/// Whether work ended at `until`, not the message.
bool was_work(const timeline& times, uint32_t index, picoseconds until) {
  const auto& x = times.graph.activities[index];
  return x.is_local()
         || (!times.reduces_in_no_time() && times.receiver_action(x) == action::recv_reduce
             && until > times.arrival(x));
}

path_part work_part(const timeline& times, uint32_t index, picoseconds until) {
  const auto& x = times.graph.activities[index];
  auto rank = x.is_local() ? x.channel : times.graph.channels[x.channel].destination;
  auto kind = times.receiver_action(x) == action::copy ? path_part::kind::copy : path_part::kind::reduction;
  auto round = times.graph.steps[x.source_step].round;
  auto duration = times.work_time(x);
  return {kind, rank, rank, round, times.bytes_of(x), until - duration, duration, 0};
}

path_part message_part(const timeline& times, uint32_t index, picoseconds until) {
  const auto& x = times.graph.activities[index];
  const auto& ends = times.graph.channels[x.channel];
  auto duration = times.transfer_time(x);
  return {path_part::kind::message, ends.source, ends.destination, times.graph.steps[x.source_step].round,
          times.bytes_of(x),        x.time,      duration,         until - x.time - duration};
}

} // namespace

std::vector<path_part> critical_path_to(const timeline& times, uint32_t last, picoseconds end) {
  std::vector<path_part> path;
  for (waited_for at{last, end}; at.activity != activity::none;) {
    ensure(at.activity < times.graph.activities.size(), "the chain has activities of the simulation");
    const auto until = at.until;
    if (was_work(times, at.activity, at.until)) {
      path.push_back(work_part(times, at.activity, at.until));
      at = before_work(times, at.activity, path.back().start);
    } else {
      path.push_back(message_part(times, at.activity, at.until));
      at = {times.graph.activities[at.activity].cause, path.back().start};
    }
    ensure(path.back().start <= until && path.back().latency >= 0, "the chain goes back in time");
  }
  std::reverse(path.begin(), path.end());
  return path;
}

path_summary summary_of(const std::vector<path_part>& path) {
  path_summary sum;
  for (const auto& part : path) {
    auto is_message = part.what == path_part::kind::message;
    ++(is_message ? sum.messages : part.what == path_part::kind::copy ? sum.copies : sum.reductions);
    (is_message ? sum.transfer : sum.work) += part.transfer;
    sum.latency += part.latency;
  }
  return sum;
}

namespace {

constexpr size_t named_max = 8;

struct waiting {
  uint32_t rank = 0, peer = 0, round = 0;
  bool sends = false;
  bool broken = false; ///< Both sides have begun, but the link is broken.
};

/// The first step of the rank's round that has not started; steps that depend on it come later.
waiting first_unstarted(const timeline& times, uint32_t rank, const rank_progress& progress) {
  for (auto i = progress.first; i < progress.next; ++i) {
    const auto& s = times.graph.steps[i];
    const auto& x = times.graph.activities[s.activity];
    if (x.time >= 0)
      continue;
    const auto& ends = times.graph.channels[x.channel];
    auto sends = ends.source == rank;
    return {rank, sends ? ends.destination : ends.source, s.round, sends, times.paths[x.channel].broken};
  }
  return {rank, rank, 0, false, false};
}

std::string text_of(const waiting& x) {
  return x.sends ? fmt::format("rank {} waits in round {} to send to rank {}", x.rank, x.round, x.peer)
                 : fmt::format("rank {} waits in round {} for rank {}", x.rank, x.round, x.peer);
}

} // namespace

std::string who_waits(const timeline& times, std::span<const rank_progress> ranks) {
  std::vector<waiting> all;
  ensure(ranks.size() == times.graph.world_size(), "every rank has progress");
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].open != 0)
      all.push_back(first_unstarted(times, rank, ranks[rank]));
  ensure(!all.empty(), "in a deadlock at least one rank waits");
  std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.broken > b.broken; });
  std::vector<std::string> broken, sentences;
  for (const auto& x : all) {
    auto link = fmt::format("{}-{}", std::min(x.rank, x.peer), std::max(x.rank, x.peer));
    if (x.broken && std::find(broken.begin(), broken.end(), link) == broken.end())
      broken.push_back(link);
    if (sentences.size() < named_max)
      sentences.push_back(text_of(x));
  }
  if (all.size() > named_max)
    sentences.push_back(fmt::format("{} more ranks wait likewise", all.size() - named_max));
  auto why = broken.empty() ? std::string{"the ranks wait for each other for ever"}
                            : fmt::format("the link {} is broken", fmt::join(broken, ", "));
  return fmt::format("{}: {}", why, fmt::join(sentences, "; "));
}

} // namespace ringmaster
