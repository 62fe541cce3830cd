#include "runtime/algorithms/trees/trees.hpp"

#include "runtime/schedule/collective.hpp"

#include <bit>
#include <vector>

namespace ringmaster {

namespace {

uint32_t height(const plan_request& request) {
  return static_cast<uint32_t>(std::bit_width(request.world_size - 1));
}

/// A link of this rank, and the round in which it is used on the way up. On the way down it is used in round
/// height - 1 - round.
struct link {
  uint32_t round = 0;
  uint32_t peer = 0;
  bool to_parent = false;
};

/// In the order of the way up: the children, then the parent.
std::vector<link> links_of(const plan_request& request, uint32_t root) {
  const uint64_t size = request.world_size;
  const auto v = (request.rank + size - root) % size;
  auto rank_of = [&](uint64_t number) { return static_cast<uint32_t>((number + root) % size); };
  std::vector<link> result;
  for (uint32_t round = 0; round < height(request); ++round) {
    const auto distance = uint64_t{1} << round;
    if ((v & distance) != 0) {
      result.push_back({round, rank_of(v - distance), true});
      break;
    }
    if (v + distance < size)
      result.push_back({round, rank_of(v + distance), false});
  }
  return result;
}

/// Rounds 0 to height - 1. `sum`: where the sum of this rank and those below it arises.
void reduce_up(schedule_builder& b, const std::vector<link>& links, block_range input, block_range sum) {
  auto own = input;
  for (const auto& link : links) {
    if (link.to_parent) {
      b.send(link.round, link.peer, own);
    } else {
      const auto is_root = !links.back().to_parent;
      b.recv_reduce(link.round, link.peer, own, sum, is_root && &link == &links.back());
      own = sum;
    }
  }
}

/// Rounds `first` to first + height - 1. `source`: what this rank sends to its children.
void send_down(schedule_builder& b, const std::vector<link>& links, uint32_t first, block_range source,
               block_range destination) {
  for (auto link = links.rbegin(); link != links.rend(); ++link) {
    const auto round = first + height(b.request) - 1 - link->round;
    if (link->to_parent)
      b.recv(round, link->peer, destination);
    else
      b.send(round, link->peer, source);
  }
}

} // namespace

schedule plan_tree_broadcast(const plan_request& request) {
  schedule_builder b{request};
  const block_range input{buffer::input, 0, request.count};
  const block_range output{buffer::output, 0, request.count};
  const auto is_root = request.rank == request.root;
  if (is_root)
    b.copy(0, input, output);
  send_down(b, links_of(request, request.root), 0, is_root ? input : output, output);
  return b.take(height(request));
}

algorithm_cost cost_of_tree_broadcast(const plan_request& request) {
  const uint64_t d = height(request);
  return {d, d * request.count, d, d, d * request.count};
}

schedule plan_tree_reduce(const plan_request& request) {
  schedule_builder b{request};
  const auto links = links_of(request, request.root);
  block_range sum{buffer::output, 0, request.count};
  if (request.rank != request.root && !links.front().to_parent)
    sum = {buffer::scratch, b.scratch(request.count), request.count};
  reduce_up(b, links, {buffer::input, 0, request.count}, sum);
  return b.take(height(request));
}

algorithm_cost cost_of_tree_reduce(const plan_request& request) {
  const uint64_t d = height(request);
  return {d, request.count, d, d, d * request.count};
}

schedule plan_tree_all_reduce(const plan_request& request) {
  schedule_builder b{request};
  const auto links = links_of(request, 0);
  const block_range output{buffer::output, 0, request.count};
  reduce_up(b, links, {buffer::input, 0, request.count}, output);
  send_down(b, links, height(request), output, output);
  return b.take(2 * height(request));
}

algorithm_cost cost_of_tree_all_reduce(const plan_request& request) {
  const uint64_t d = height(request);
  return {2 * d, d * request.count, d, 2 * d, 2 * d * request.count};
}

schedule plan_tree_barrier(const plan_request& request) {
  schedule_builder b{request};
  const auto links = links_of(request, 0);
  const block_range token{buffer::scratch, b.scratch(1), 1}; // of a rank's links no two are used in one round
  for (const auto& link : links) {
    if (link.to_parent)
      b.send(link.round, link.peer, token);
    else
      b.recv(link.round, link.peer, token);
  }
  send_down(b, links, height(request), token, token);
  return b.take(2 * height(request));
}

algorithm_cost cost_of_tree_barrier(const plan_request& request) {
  const uint64_t d = height(request);
  return {2 * d, d, d, 2 * d, 2 * d};
}

} // namespace ringmaster
