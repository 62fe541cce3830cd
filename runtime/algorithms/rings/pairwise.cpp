#include "runtime/algorithms/rings/rings.hpp"

#include "runtime/algorithms/parts/cost_counter.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <bit>

namespace ringmaster {

schedule plan_pairwise_reduce_scatter(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank;
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, rank);
  const block_range sum{buffer::output, 0, cut.count(rank)};
  schedule_builder plan{request};
  for (uint32_t t = 1; t < n; ++t) {
    const auto to = (rank + t) % n, from = (rank + n - t) % n;
    plan.send(t - 1, to, cut.at(buffer::input, to));
    plan.recv_reduce(t - 1, from, t == 1 ? cut.at(buffer::input, rank) : sum, sum, t + 1 == n);
  }
  return plan.take(n - 1);
}

algorithm_cost cost_of_pairwise_reduce_scatter(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::of(proto::REDUCE_SCATTER, request, 0);
  uint64_t largest = 0, smallest = cut.total();
  for (uint32_t i = 0; i < n; ++i) {
    largest = std::max(largest, cut.count(i));
    smallest = std::min(smallest, cut.count(i));
  }
  return {n - 1, cut.total() - smallest, n - 1, n - 1, (n - 1) * largest};
}

schedule plan_pairwise_all_to_all(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank;
  const auto sent = blocks::of(proto::ALL_TO_ALL, request, rank);
  const auto received = blocks::received(request, rank);
  schedule_builder plan{request};
  plan.copy(0, sent.at(buffer::input, rank), received.at(buffer::output, rank));
  for (uint32_t t = 1; t < n; ++t) {
    const auto to = (rank + t) % n, from = (rank + n - t) % n;
    plan.send(t - 1, to, sent.at(buffer::input, to));
    plan.recv(t - 1, from, received.at(buffer::output, from));
  }
  return plan.take(n - 1);
}

algorithm_cost cost_of_pairwise_all_to_all(const plan_request& request) {
  const uint64_t n = request.world_size;
  if (request.counts.empty())
    return {n - 1, (n - 1) * request.count, n - 1, n - 1, (n - 1) * request.count};
  cost_counter counter{request.world_size};
  for (uint32_t t = 1; t < n; ++t) {
    for (uint32_t rank = 0; rank < n; ++rank) {
      const auto to = static_cast<uint32_t>((rank + t) % n);
      counter.send(rank, to, request.counts[rank * n + to]);
    }
    counter.end_round();
  }
  return counter.take();
}

schedule plan_dissemination_barrier(const plan_request& request) {
  schedule_builder b{request};
  const block_range mine{buffer::scratch, b.scratch(1), 1};
  const block_range theirs{buffer::scratch, b.scratch(1), 1};
  const uint64_t size = request.world_size;
  const auto rounds = static_cast<uint32_t>(std::bit_width(request.world_size - 1));
  for (uint32_t round = 0; round < rounds; ++round) {
    const auto distance = uint64_t{1} << round;
    b.send(round, static_cast<uint32_t>((request.rank + distance) % size), mine);
    b.recv(round, static_cast<uint32_t>((request.rank + size - distance) % size), theirs);
  }
  return b.take(rounds);
}

algorithm_cost cost_of_dissemination_barrier(const plan_request& request) {
  const uint64_t rounds = std::bit_width(request.world_size - 1);
  return {rounds, rounds, rounds, rounds, rounds};
}

} // namespace ringmaster
