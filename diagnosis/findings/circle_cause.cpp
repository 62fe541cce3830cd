#include "diagnosis/findings/circle_cause.hpp"

#include "diagnosis/findings/call_history.hpp"
#include "diagnosis/findings/call_match.hpp"

#include <algorithm>
#include <set>

namespace ringmaster::diagnosis {

namespace {

/// Calls that lead to each other, and from which nothing else is reached: a strongly connected component without exits
/// (Tarjan 1972, without recursion).
class component_search {
public:
  explicit component_search(const wait_graph& graph) : graph_(graph) {
    auto count = graph.calls().size();
    order_.assign(count, 0);
    low_.assign(count, 0);
    component_.assign(count, UINT32_MAX);
  }

  std::vector<std::vector<uint32_t>> run() {
    for (uint32_t i = 0; i < graph_.calls().size(); ++i)
      if (order_[i] == 0 && is_used(i))
        visit(i);
    std::erase_if(components_, [&](auto& x) { return !is_circle(x) || has_exit(x); });
    return std::move(components_);
  }

private:
  struct frame {
    uint32_t call;
    std::vector<uint32_t> next;
    size_t at = 0;
  };

  bool is_used(uint32_t i) const { return !graph_.calls()[i].is_weak; }
  std::vector<uint32_t> next_of(uint32_t i) const {
    std::vector<uint32_t> result;
    for (auto rank : graph_.calls()[i].blockers)
      for (auto head : graph_.heads(rank))
        if (is_used(head))
          result.push_back(head);
    std::ranges::sort(result);
    result.erase(std::ranges::unique(result).begin(), result.end());
    return result;
  }
  void open(uint32_t i) {
    order_[i] = low_[i] = ++visited_;
    stack_.push_back(i);
    frames_.push_back({i, next_of(i)});
  }
  void visit(uint32_t root) {
    open(root);
    while (!frames_.empty()) {
      auto& top = frames_.back();
      if (top.at < top.next.size()) {
        auto to = top.next[top.at++];
        if (order_[to] == 0)
          open(to);
        else if (component_[to] == UINT32_MAX)
          low_[top.call] = std::min(low_[top.call], order_[to]);
        continue;
      }
      auto done = top.call;
      frames_.pop_back();
      if (!frames_.empty())
        low_[frames_.back().call] = std::min(low_[frames_.back().call], low_[done]);
      if (low_[done] == order_[done])
        close(done);
    }
  }
  void close(uint32_t first) {
    auto& component = components_.emplace_back();
    for (uint32_t x = UINT32_MAX; x != first;) {
      x = stack_.back();
      stack_.pop_back();
      component_[x] = static_cast<uint32_t>(components_.size() - 1);
      component.push_back(x);
    }
  }
  bool is_circle(const std::vector<uint32_t>& x) const {
    return x.size() > 1 || std::ranges::binary_search(next_of(x.front()), x.front());
  }
  bool has_exit(const std::vector<uint32_t>& x) const {
    for (auto call : x)
      for (auto to : next_of(call))
        if (component_[to] != component_[call])
          return true;
    return false;
  }

  const wait_graph& graph_;
  uint32_t visited_ = 0;
  std::vector<uint32_t> order_, low_, component_, stack_;
  std::vector<frame> frames_;
  std::vector<std::vector<uint32_t>> components_;
};

/// A rank of the circle whose calls differ from its earlier steps.
struct odd_rank {
  uint32_t rank = 0; ///< Number in the graph.
  step_deviation how;
};

void describe_odd_ranks(const wait_graph& graph, const std::vector<odd_rank>& all, cause& result) {
  for (auto& x : all)
    result.ranks.push_back(graph.ranks()[x.rank]);
  auto& first = all.front();
  result.awaited = first.how.expected;
  result.made = graph.records(first.rank)->calls[first.how.at];
  result.has_made = true;
  result.kind = first.how.kind;
  result.sure = certainty::likely;
}

/// Without earlier steps: the call to which the smallest part of its group has come is the odd one.
void describe_fewest(const wait_graph& graph, const std::vector<uint32_t>& circle, cause& result) {
  auto part = [&](uint32_t i) {
    auto& x = graph.calls()[i];
    auto size = std::max<size_t>(graph.job().groups[x.call.group].members.size(), 1);
    return static_cast<double>(size - std::min(size, x.blockers.size())) / static_cast<double>(size);
  };
  auto fewest = std::ranges::min_element(circle, {}, part);
  auto most = std::ranges::max_element(circle, {}, part);
  const bool tie = part(*fewest) == part(*most);
  for (auto i : circle)
    if (tie || i == *fewest)
      for (auto rank : graph.calls()[i].waiting)
        result.ranks.push_back(graph.ranks()[rank]);
  result.awaited = graph.calls()[*most].call;
  result.made = graph.calls()[*fewest].call;
  result.has_made = true;
  result.sure = tie ? certainty::ambiguous : certainty::likely;
  result.kind = tie || mismatch_of(graph.job(), result.awaited, result.made) ? fault_kind::other_order
                                                                             : fault_kind::other_group;
}

} // namespace

std::optional<cause> circle_cause(const wait_graph& graph) {
  auto circles = component_search{graph}.run();
  if (circles.empty())
    return {};
  auto earliest = [&](auto& circle) {
    int64_t result = INT64_MAX;
    for (auto i : circle)
      if (auto since = graph.calls()[i].since_ns; since != 0)
        result = std::min(result, since);
    return result;
  };
  auto& circle = *std::ranges::min_element(circles, {}, earliest);
  cause result;
  result.has_call = true;
  std::set<uint32_t> ranks;
  for (auto i : circle)
    ranks.insert(graph.calls()[i].waiting.begin(), graph.calls()[i].waiting.end());
  std::vector<odd_rank> odd;
  for (auto rank : ranks)
    if (auto how = deviation_of(graph.job(), *graph.records(rank)))
      odd.push_back({rank, *how});
  if (odd.empty() || odd.size() * 2 > ranks.size())
    describe_fewest(graph, circle, result);
  else
    describe_odd_ranks(graph, odd, result);
  std::ranges::sort(result.ranks);
  result.ranks.erase(std::ranges::unique(result.ranks).begin(), result.ranks.end());
  return result;
}

} // namespace ringmaster::diagnosis
