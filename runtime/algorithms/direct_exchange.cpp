#include "runtime/algorithms/direct_exchange.hpp"

#include "runtime/blocks.hpp"
#include "runtime/schedule_builder.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// Sends `block_for(peer)` to every other rank.
template <class F>
void send_to_all(schedule_builder& plan, F block_for) {
  const auto n = plan.request.world_size;
  for (uint32_t t = 1; t < n; ++t) {
    const auto to = (plan.request.rank + t) % n;
    plan.send(0, to, block_for(to));
  }
}

/// Receives every other rank's block where it belongs in the output.
void recv_from_all(schedule_builder& plan, const blocks& cut) {
  const auto n = plan.request.world_size;
  for (uint32_t t = 1; t < n; ++t) {
    const auto from = (plan.request.rank + n - t) % n;
    plan.recv(0, from, cut.at(buffer::output, from));
  }
}

/// `count_for(from, to)`: elements. Messages go in the order of their senders' lists, the k-th of each rank before the
/// next one of any: the k-th together hold no port for longer than the most that one rank receives of them.
template <class F>
algorithm_cost cost_of_exchange(uint32_t n, F count_for) {
  algorithm_cost cost{1, 0, 0, 0, 0};
  std::vector<uint64_t> sent(n), received(n), messages_in(n), messages_out(n);
  std::vector<uint32_t> next(n, 1); // by rank: how far on in the ring its next receiver is
  for (bool any = true; any;) {
    any = false;
    std::fill(received.begin(), received.end(), 0);
    for (uint32_t from = 0; from < n; ++from) {
      while (next[from] < n && count_for(from, (from + next[from]) % n) == 0)
        ++next[from];
      if (next[from] == n)
        continue;
      const auto to = (from + next[from]++) % n;
      sent[from] += count_for(from, to);
      received[to] += count_for(from, to);
      cost.messages = std::max({cost.messages, ++messages_out[from], ++messages_in[to]});
      any = true;
    }
    cost.serial_elements += *std::max_element(received.begin(), received.end());
  }
  cost.elements = *std::max_element(sent.begin(), sent.end());
  cost.latencies = cost.messages != 0 ? 1 : 0;
  return cost;
}

/// A gather or a scatter: all goes through the root's one port.
algorithm_cost cost_at_root(const plan_request& request, const blocks& cut, bool root_sends) {
  algorithm_cost cost{1, 0, 0, 0, cut.total() - cut.count(request.root)};
  for (uint32_t rank = 0; rank < cut.size(); ++rank)
    if (rank != request.root && cut.count(rank) != 0) {
      cost.elements = root_sends ? cost.serial_elements : std::max(cost.elements, cut.count(rank));
      cost.latencies = 1;
      ++cost.messages;
    }
  return cost;
}

} // namespace

schedule plan_direct_all_gather(const plan_request& request) {
  const auto cut = blocks::of(proto::ALL_GATHER, request, request.rank);
  const block_range own{buffer::input, 0, cut.count(request.rank)};
  schedule_builder plan{request};
  send_to_all(plan, [&](uint32_t) { return own; });
  recv_from_all(plan, cut);
  plan.copy(0, own, cut.at(buffer::output, request.rank));
  return plan.take(1);
}

algorithm_cost cost_of_direct_all_gather(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, 0);
  uint64_t largest = 0;
  for (uint32_t rank = 0; rank < n; ++rank)
    largest = std::max(largest, cut.count(rank));
  return {1, (n - 1) * largest, n - 1, 1, (n - 1) * largest};
}

schedule plan_direct_all_to_all(const plan_request& request) {
  const auto rank = request.rank;
  const auto sent = blocks::of(proto::ALL_TO_ALL, request, rank);
  const auto received = blocks::received(request, rank);
  schedule_builder plan{request};
  send_to_all(plan, [&](uint32_t to) { return sent.at(buffer::input, to); });
  recv_from_all(plan, received);
  plan.copy(0, sent.at(buffer::input, rank), received.at(buffer::output, rank));
  return plan.take(1);
}

algorithm_cost cost_of_direct_all_to_all(const plan_request& request) {
  const uint64_t n = request.world_size;
  if (request.counts.empty())
    return {1, (n - 1) * request.count, n - 1, 1, (n - 1) * request.count};
  return cost_of_exchange(request.world_size,
                          [&](uint32_t from, uint32_t to) { return request.counts[from * n + to]; });
}

schedule plan_direct_gather(const plan_request& request) {
  const auto cut = blocks::of(proto::GATHER, request, request.rank);
  const block_range own{buffer::input, 0, cut.count(request.rank)};
  schedule_builder plan{request};
  if (request.rank != request.root) {
    plan.send(0, request.root, own);
  } else {
    plan.copy(0, own, cut.at(buffer::output, request.root));
    recv_from_all(plan, cut);
  }
  return plan.take(1);
}

algorithm_cost cost_of_direct_gather(const plan_request& request) {
  return cost_at_root(request, blocks::of(proto::GATHER, request, 0), false);
}

schedule plan_direct_scatter(const plan_request& request) {
  const auto cut = blocks::of(proto::SCATTER, request, request.rank);
  const block_range own{buffer::output, 0, cut.count(request.rank)};
  schedule_builder plan{request};
  if (request.rank != request.root) {
    plan.recv(0, request.root, own);
  } else {
    plan.copy(0, cut.at(buffer::input, request.root), own);
    send_to_all(plan, [&](uint32_t to) { return cut.at(buffer::input, to); });
  }
  return plan.take(1);
}

algorithm_cost cost_of_direct_scatter(const plan_request& request) {
  return cost_at_root(request, blocks::of(proto::SCATTER, request, 0), true);
}

schedule plan_direct_broadcast(const plan_request& request) {
  const block_range input{buffer::input, 0, request.count}, output{buffer::output, 0, request.count};
  schedule_builder plan{request};
  if (request.rank != request.root) {
    plan.recv(0, request.root, output);
  } else {
    plan.copy(0, input, output);
    send_to_all(plan, [&](uint32_t) { return input; });
  }
  return plan.take(1);
}

algorithm_cost cost_of_direct_broadcast(const plan_request& request) {
  const auto others = uint64_t{request.world_size} - 1;
  return {1, others * request.count, others, 1, others * request.count};
}

} // namespace ringmaster
