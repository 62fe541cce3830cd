#pragma once

#include <cstddef>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ringmaster::test {

/// Walks every order of events: all states that a world can reach from this one, each once. Returns their number.
///
/// A World is copied and has `possible()`, the events that may come next; `apply(event)`; `check_rest()`, what must
/// hold in a state whatever comes next; and `fingerprint()`, of everything that later events depend on. Two states with
/// one fingerprint would only be fewer cases.
template <class World>
size_t walk_all_orders(World first) {
  std::unordered_set<decltype(first.fingerprint())> seen;
  std::vector<World> open;
  open.push_back(std::move(first));
  while (!open.empty()) {
    auto now = std::move(open.back());
    open.pop_back();
    now.check_rest();
    for (auto& event : now.possible()) {
      auto next = now;
      next.apply(event);
      if (seen.insert(next.fingerprint()).second)
        open.push_back(std::move(next));
    }
  }
  return seen.size();
}

} // namespace ringmaster::test
