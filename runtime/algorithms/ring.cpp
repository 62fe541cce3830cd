#include "runtime/algorithms/ring.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// One rank's view of the ring.
struct ring {
  const plan_request& request;
  schedule result;

  uint32_t size() const { return request.world_size; }
  uint32_t next() const { return (request.rank + 1) % size(); }
  uint32_t previous() const { return (request.rank + size() - 1) % size(); }

  /// Block `steps_back` before block `index`; `steps_back` <= N.
  block_range block(buffer where, uint32_t index, uint32_t steps_back) const {
    return block_of(where, request.count, size(), (index + size() - steps_back) % size());
  }

  void add(step next_step) {
    auto elements = next_step.what == action::send ? next_step.source.count : next_step.destination.count;
    if (elements != 0)
      result.steps.push_back(next_step);
  }
};

/// Round t: block r-t goes on, block r-t-1 comes in.
void reduce_scatter(ring& r) {
  for (uint32_t t = 0; t + 1 < r.size(); ++t) {
    auto rank = r.request.rank;
    r.add({.what = action::send,
           .round = t,
           .peer = r.next(),
           .source = r.block(t == 0 ? buffer::input : buffer::output, rank, t)});
    r.add({.what = action::recv_reduce,
           .round = t,
           .peer = r.previous(),
           .source = r.block(buffer::input, rank, t + 1),
           .destination = r.block(buffer::output, rank, t + 1),
           .finish = t + 2 == r.size()});
  }
}

/// Round t: block r+1-t, which is whole, goes on, and block r-t comes in.
void all_gather(ring& r) {
  for (uint32_t t = 0; t + 1 < r.size(); ++t) {
    auto round = r.size() - 1 + t;
    r.add({.what = action::send,
           .round = round,
           .peer = r.next(),
           .source = r.block(buffer::output, r.next(), t)});
    r.add({.what = action::recv,
           .round = round,
           .peer = r.previous(),
           .destination = r.block(buffer::output, r.request.rank, t)});
  }
}

} // namespace

schedule plan_ring_all_reduce(const plan_request& request) {
  ring r{request, {}};
  r.result.rounds = 2 * (request.world_size - 1);
  r.result.steps.reserve(4 * size_t{request.world_size - 1});
  reduce_scatter(r);
  all_gather(r);
  return std::move(r.result);
}

algorithm_cost cost_of_ring_all_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto rounds = 2 * (n - 1);
  const auto with_elements = std::min(request.count, n);
  const auto block = [&](uint64_t index) { return block_of(buffer::output, request.count, request.world_size, static_cast<uint32_t>(index % n)).count; };
  algorithm_cost cost{rounds, 0, 0, rounds, rounds * ((request.count + n - 1) / n)};
  for (uint64_t rank = 0; rank < n; ++rank) { // a rank sends each block twice, but for the two that it sends once
    const auto once = block(rank + 1) + block(rank + 2);
    const auto missing = (block(rank + 1) != 0 ? 1u : 0u) + (block(rank + 2) != 0 ? 1u : 0u);
    cost.elements = std::max(cost.elements, 2 * request.count - once);
    cost.messages = std::max(cost.messages, 2 * with_elements - missing);
  }
  return cost;
}

} // namespace ringmaster
