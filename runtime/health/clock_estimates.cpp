#include "runtime/health/clock_estimates.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

void clock_estimates::asked(uint64_t number, uint64_t now_ns) {
  constexpr size_t requests_max = 64;
  ensure(requests_.empty() || requests_.back().first < number, "requests have rising numbers");
  requests_.emplace_back(number, now_ns);
  if (requests_.size() > requests_max)
    requests_.pop_front();
}

std::optional<proto::NodeClock> clock_estimates::answered(node_id node, uint64_t number, uint64_t theirs_ns,
                                                          uint64_t now_ns) {
  constexpr uint64_t stale_ns = 60'000'000'000; // clocks drift by some 50 us a second at most
  auto request = std::find_if(requests_.begin(), requests_.end(), [=](auto& x) { return x.first == number; });
  if (request == requests_.end() || now_ns < request->second)
    return std::nullopt;
  auto found = clock_offset::of(request->second, theirs_ns, now_ns);
  ensure(found.error_ns <= now_ns - request->second, "the error is at most the round trip");
  auto known = best_.find(node);
  if (known != best_.end() && found.error_ns > known->second.error_ns / 2
      && (now_ns - known->second.since_ns < stale_ns || found.error_ns > 2 * known->second.error_ns))
    return std::nullopt;
  best_[node] = {found.error_ns, now_ns};
  proto::NodeClock result;
  result.set_node_id(node.value);
  result.set_offset_ns(found.offset_ns);
  result.set_error_ns(found.error_ns);
  return result;
}

} // namespace ringmaster
