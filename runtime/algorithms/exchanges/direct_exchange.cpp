#include "runtime/algorithms/exchanges/exchanges.hpp"

#include "runtime/schedule/collective.hpp"

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

/// What goes through each rank's two ports in the round.
struct exchange {
  struct port {
    uint64_t elements = 0, messages = 0;
    void pass(uint64_t count) {
      elements += count;
      messages += count != 0 ? 1 : 0;
    }
  };

  explicit exchange(uint32_t world_size) : out(world_size), in(world_size) {}

  /// Blocks of one size follow each other without a gap. With others the last one may have waited for its sender, busy
  /// with all it has to send, and for its receiver, busy with all it gets, but for nothing else.
  algorithm_cost cost(bool same_size) const {
    uint64_t sent = 0, received = 0, messages = 0;
    for (size_t rank = 0; rank < out.size(); ++rank) {
      sent = std::max(sent, out[rank].elements);
      received = std::max(received, in[rank].elements);
      messages = std::max({messages, out[rank].messages, in[rank].messages});
    }
    return {1, sent, messages, messages != 0 ? 1u : 0u, same_size ? sent : sent + received};
  }

  std::vector<port> out, in;
};

bool same_size(const std::vector<uint64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](auto count) { return count == counts.front(); });
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
  plan.copy(0, own, cut.at(buffer::output, request.rank));
  send_to_all(plan, [&](uint32_t) { return own; });
  recv_from_all(plan, cut);
  return plan.take(1);
}

algorithm_cost cost_of_direct_all_gather(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::ALL_GATHER, request, 0);
  uint64_t largest = 0, smallest = cut.total();
  for (uint32_t rank = 0; rank < n; ++rank) {
    largest = std::max(largest, cut.count(rank));
    smallest = std::min(smallest, cut.count(rank));
  }
  const auto sent = (n - 1) * largest, received = cut.total() - smallest;
  return {1, sent, n - 1, 1, largest == smallest ? sent : sent + received}; // as of an exchange
}

schedule plan_direct_all_to_all(const plan_request& request) {
  const auto rank = request.rank;
  const auto sent = blocks::of(proto::ALL_TO_ALL, request, rank);
  const auto received = blocks::received(request, rank);
  schedule_builder plan{request};
  plan.copy(0, sent.at(buffer::input, rank), received.at(buffer::output, rank));
  send_to_all(plan, [&](uint32_t to) { return sent.at(buffer::input, to); });
  recv_from_all(plan, received);
  return plan.take(1);
}

algorithm_cost cost_of_direct_all_to_all(const plan_request& request) {
  const uint64_t n = request.world_size;
  if (request.counts.empty())
    return {1, (n - 1) * request.count, n - 1, 1, (n - 1) * request.count};
  exchange all{request.world_size};
  for (uint64_t from = 0; from < n; ++from)
    for (uint64_t to = 0; to < n; ++to)
      if (from != to) {
        all.out[from].pass(request.counts[from * n + to]);
        all.in[to].pass(request.counts[from * n + to]);
      }
  return all.cost(same_size(request.counts));
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

schedule plan_direct_send_recv(const plan_request& request) {
  schedule_builder b{request};
  if (request.rank == request.root)
    b.send(0, request.peer, {buffer::input, 0, request.count});
  else if (request.rank == request.peer)
    b.recv(0, request.root, {buffer::output, 0, request.count});
  return b.take(1);
}

algorithm_cost cost_of_direct_send_recv(const plan_request& request) {
  return {1, request.count, 1, 1, request.count};
}

} // namespace ringmaster
