#include "diagnosis/findings/wait_chain.hpp"

#include <algorithm>

namespace ringmaster::diagnosis {

namespace {

/// Distances from the cause, backwards along the waits: of a call the number of calls between it and the cause.
class backward_search {
public:
  backward_search(const wait_graph& graph, const std::vector<uint32_t>& ranks, uint32_t at, bool with_weak)
    : graph_(graph), with_weak_(with_weak) {
    calls_blocked_.resize(graph.ranks().size());
    for (uint32_t i = 0; i < graph.calls().size(); ++i)
      for (auto* side : {&graph.calls()[i].blockers, &graph.calls()[i].suspects})
        for (auto rank : *side)
          calls_blocked_[rank].push_back(i);
    call_distance.assign(graph.calls().size(), UINT32_MAX);
    rank_distance.assign(graph.ranks().size(), UINT32_MAX);
    for (auto rank : ranks)
      rank_distance[rank] = 0;
    if (at < graph.calls().size())
      reach(at, 0);
    for (auto rank : ranks)
      for (auto i : calls_blocked_[rank])
        reach(i, 0);
    for (size_t next = 0; next < queue_.size(); ++next)
      for (auto rank : graph.calls()[queue_[next]].waiting)
        if (rank_distance[rank] == UINT32_MAX) {
          rank_distance[rank] = call_distance[queue_[next]] + 1;
          for (auto i : calls_blocked_[rank])
            reach(i, rank_distance[rank]);
        }
  }

  std::vector<uint32_t> call_distance, rank_distance;

private:
  void reach(uint32_t call, uint32_t distance) {
    if (call_distance[call] != UINT32_MAX || (graph_.calls()[call].is_weak && !with_weak_))
      return;
    call_distance[call] = distance;
    queue_.push_back(call);
  }

  const wait_graph& graph_;
  bool with_weak_;
  std::vector<std::vector<uint32_t>> calls_blocked_;
  std::vector<uint32_t> queue_;
};

std::string_view text_of(waited_call::reason x) {
  switch (x) {
    case waited_call::reason::not_called: return "did not come to it";
    case waited_call::reason::mismatch: return "called something else there";
    case waited_call::reason::not_started: return "did not start it on the GPU";
    case waited_call::reason::unfinished: return "did not complete it";
    case waited_call::reason::inside: return "did not leave it either";
    case waited_call::reason::no_partner: return "did not call the other side of it";
  }
  return {};
}

} // namespace

std::vector<uint32_t> victims_of(const wait_graph& graph, const std::vector<uint32_t>& ranks, uint32_t at,
                                 bool with_weak) {
  backward_search search{graph, ranks, at, with_weak};
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < search.rank_distance.size(); ++rank)
    if (search.rank_distance[rank] != UINT32_MAX && search.rank_distance[rank] != 0)
      result.push_back(rank);
  return result;
}

std::vector<wait_link> chain_to(const wait_graph& graph, const std::vector<uint32_t>& ranks, uint32_t at,
                                bool with_weak) {
  backward_search search{graph, ranks, at, with_weak};
  uint32_t next = UINT32_MAX;
  for (uint32_t i = 0; i < graph.calls().size(); ++i) {
    if (search.call_distance[i] == UINT32_MAX)
      continue;
    auto key = [&](uint32_t j) { return std::pair{search.call_distance[j], graph.calls()[j].waiting.size()}; };
    if (next == UINT32_MAX || key(i) > key(next))
      next = i;
  }
  std::vector<wait_link> result;
  while (next != UINT32_MAX) {
    auto& x = graph.calls()[next];
    auto& link = result.emplace_back();
    link.call = x.call;
    link.since_ns = x.since_ns;
    link.reason = text_of(x.why);
    for (auto rank : x.waiting)
      link.waiting.push_back(graph.ranks()[rank]);
    // On towards the cause: of those it waits for, the ones nearest to it.
    uint32_t nearest = UINT32_MAX;
    for (auto* side : {&x.blockers, &x.suspects})
      for (auto rank : *side)
        nearest = std::min(nearest, search.rank_distance[rank]);
    const auto from = search.call_distance[next];
    next = UINT32_MAX;
    for (auto* side : {&x.blockers, &x.suspects})
      for (auto rank : *side)
        if (search.rank_distance[rank] == nearest) {
          link.waits_for.push_back(graph.ranks()[rank]);
          for (auto head : graph.heads(rank))
            if (search.call_distance[head] < from
                && (next == UINT32_MAX || search.call_distance[head] < search.call_distance[next]))
              next = head;
        }
    std::ranges::sort(link.waits_for);
  }
  if (result.size() > links_max)
    result.erase(result.begin() + links_max / 2, result.end() - links_max / 2);
  return result;
}

} // namespace ringmaster::diagnosis
