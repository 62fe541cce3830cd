#include "runtime/simulation/stuck.hpp"

#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster {

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
