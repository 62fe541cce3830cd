#include "runtime/algorithms/exchanges/exchanges.hpp"

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

namespace {

uint64_t others(const plan_request& request) {
  return uint64_t{request.world_size} - 1;
}

block_range whole(const plan_request& request, buffer where) {
  return {where, 0, request.count};
}

/// N-1 rounds, one for each rank but the root, in rank order.
void reduce_to(schedule_builder& b, uint32_t root) {
  const auto& request = b.request;
  const auto input = whole(request, buffer::input);
  const auto output = whole(request, buffer::output);
  auto round_of = [root](uint32_t peer) { return peer < root ? peer : peer - 1; };
  if (request.rank != root) {
    b.send(round_of(request.rank), root, input);
    return;
  }
  const auto adds_itself_later = root > 1; // x0 + x1 needs no extra step if the root is one of the two
  const auto is_last = root + 1 == request.world_size;
  for (uint32_t peer = 0; peer < request.world_size; ++peer) {
    if (peer == root)
      continue;
    const auto round = round_of(peer);
    if (round == 0 && adds_itself_later)
      b.recv(round, peer, output);
    else
      b.recv_reduce(round, peer, round == 0 ? input : output, output,
                    round + 2 == request.world_size && !(adds_itself_later && is_last));
    if (adds_itself_later && peer + 1 == root) {
      b.reduce(round, input, output, is_last);
      b.then();
    }
  }
}

/// One round.
void broadcast_from(schedule_builder& b, uint32_t root, uint32_t round, buffer source) {
  if (b.request.rank != root) {
    b.recv(round, root, whole(b.request, buffer::output));
    return;
  }
  for (uint32_t peer = 0; peer < b.request.world_size; ++peer)
    if (peer != root)
      b.send(round, peer, whole(b.request, source));
}

} // namespace

schedule plan_naive_all_reduce(const plan_request& request) {
  schedule_builder b{request};
  reduce_to(b, 0);
  broadcast_from(b, 0, request.world_size - 1, buffer::output);
  return b.take(request.world_size);
}

algorithm_cost cost_of_naive_all_reduce(const plan_request& request) {
  const auto elements = others(request) * request.count;
  return {request.world_size, elements, others(request), request.world_size, 2 * elements};
}

schedule plan_naive_broadcast(const plan_request& request) {
  schedule_builder b{request};
  broadcast_from(b, request.root, 0, buffer::input);
  if (request.rank == request.root)
    b.copy(0, whole(request, buffer::input), whole(request, buffer::output));
  return b.take(1);
}

algorithm_cost cost_of_naive_broadcast(const plan_request& request) {
  const auto elements = others(request) * request.count;
  return {1, elements, others(request), 1, elements};
}

schedule plan_naive_reduce(const plan_request& request) {
  schedule_builder b{request};
  reduce_to(b, request.root);
  return b.take(request.world_size - 1);
}

algorithm_cost cost_of_naive_reduce(const plan_request& request) {
  return {others(request), request.count, others(request), others(request), others(request) * request.count};
}

schedule plan_naive_barrier(const plan_request& request) {
  schedule_builder b{request};
  b.scratch(request.rank == 0 ? request.world_size : 1); // rank 0: where each rank's token comes in, and its own
  auto token_of = [&](uint32_t rank) { return block_range{buffer::scratch, request.rank == 0 ? rank : 0, 1}; };
  if (request.rank != 0) {
    b.send(0, 0, token_of(request.rank));
    b.recv(1, 0, token_of(0));
    return b.take(2);
  }
  for (uint32_t peer = 1; peer < request.world_size; ++peer)
    b.recv(0, peer, token_of(peer));
  for (uint32_t peer = 1; peer < request.world_size; ++peer)
    b.send(1, peer, token_of(0));
  return b.take(2);
}

algorithm_cost cost_of_naive_barrier(const plan_request& request) {
  return {2, others(request), others(request), 2, 2 * others(request)};
}

} // namespace ringmaster
