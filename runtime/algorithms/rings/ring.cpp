#include "runtime/algorithms/rings/rings.hpp"

#include "runtime/algorithms/parts/pieces.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>

namespace ringmaster {

namespace {

/// One rank's view of the ring.
struct ring {
  schedule_builder plan;
  blocks cut;

  uint32_t size() const { return plan.request.world_size; }
  uint32_t rank() const { return plan.request.rank; }
  uint32_t next() const { return (rank() + 1) % size(); }
  uint32_t previous() const { return (rank() + size() - 1) % size(); }
  uint32_t before(uint32_t index, uint32_t steps) const { return (index + 2 * size() - steps) % size(); }
};

/// Round t: block r-lead-t goes on, block r-lead-t-1 comes in; `place(t, index)` is where the sum of the latter arises.
/// Block b sets out from rank b+lead.
template <class Place>
void reduce_scatter(ring& r, uint32_t lead, Place place) {
  for (uint32_t t = 0; t + 1 < r.size(); ++t) {
    const auto passed_on = r.before(r.rank(), lead + t);
    const auto met = r.before(r.rank(), lead + t + 1);
    r.plan.send(t, r.next(), t == 0 ? r.cut.at(buffer::input, passed_on) : place(t - 1, passed_on));
    r.plan.recv_reduce(t, r.previous(), r.cut.at(buffer::input, met), place(t, met), t + 2 == r.size());
  }
}

/// Round t, from `first_round` on: block own-t, which is whole, goes on, and the one before it comes in. The rank holds
/// block `own` at `source`.
void all_gather(ring& r, uint32_t first_round, uint32_t own, block_range source) {
  for (uint32_t t = 0; t + 1 < r.size(); ++t) {
    r.plan.send(first_round + t, r.next(), t == 0 ? source : r.cut.at(buffer::output, r.before(own, t)));
    r.plan.recv(first_round + t, r.previous(), r.cut.at(buffer::output, r.before(own, t + 1)));
  }
}

/// Either phase alone: each rank sends, and each rank receives, every block but one.
algorithm_cost cost_of_phase(const blocks& cut) {
  const uint64_t n = cut.size();
  uint64_t largest = 0, smallest = cut.total(), with_elements = 0;
  for (uint32_t i = 0; i < n; ++i) {
    largest = std::max(largest, cut.count(i));
    smallest = std::min(smallest, cut.count(i));
    with_elements += cut.count(i) != 0 ? 1 : 0;
  }
  return {n - 1, cut.total() - smallest, std::min(with_elements, n - 1), n - 1, (n - 1) * largest};
}

} // namespace

schedule plan_ring_all_reduce(const plan_request& request) {
  ring r{schedule_builder{request}, blocks::even(request.count, request.world_size)};
  reduce_scatter(r, 0, [&](uint32_t, uint32_t index) { return r.cut.at(buffer::output, index); });
  all_gather(r, r.size() - 1, r.next(), r.cut.at(buffer::output, r.next()));
  return r.plan.take(2 * (r.size() - 1));
}

schedule plan_ring_reduce_scatter(const plan_request& request) {
  ring r{schedule_builder{request}, blocks::of(proto::REDUCE_SCATTER, request, request.rank)};
  uint64_t largest = 0;
  for (uint32_t i = 0; i < r.size(); ++i)
    largest = std::max(largest, r.cut.count(i));
  r.plan.scratch(largest * std::min(r.size() - 2, 2u));
  reduce_scatter(r, 1, [&](uint32_t t, uint32_t index) {
    const auto count = r.cut.count(index);
    return t + 2 == r.size() ? block_range{buffer::output, 0, count}
                             : block_range{buffer::scratch, t % 2 * largest, count};
  });
  return r.plan.take(r.size() - 1);
}

schedule plan_ring_all_gather(const plan_request& request) {
  ring r{schedule_builder{request}, blocks::of(proto::ALL_GATHER, request, request.rank)};
  const block_range own{buffer::input, 0, r.cut.count(r.rank())};
  r.plan.copy(0, own, r.cut.at(buffer::output, r.rank()));
  all_gather(r, 0, r.rank(), own);
  return r.plan.take(r.size() - 1);
}

algorithm_cost cost_of_ring_all_reduce(const plan_request& request) {
  const uint64_t n = request.world_size;
  const auto cut = blocks::even(request.count, request.world_size);
  const auto rounds = 2 * (n - 1);
  const auto with_elements = std::min(request.count, n);
  algorithm_cost cost{rounds, 0, 0, rounds, rounds * cut.count(0)};
  for (uint32_t rank = 0; rank < n; ++rank) { // a rank sends each block twice, but for the two that it sends once
    const auto first = cut.count((rank + 1) % cut.size()), second = cut.count((rank + 2) % cut.size());
    cost.elements = std::max(cost.elements, 2 * request.count - first - second);
    cost.messages = std::max(cost.messages, 2 * with_elements - (first != 0 ? 1 : 0) - (second != 0 ? 1 : 0));
  }
  return cost;
}

algorithm_cost cost_of_ring_reduce_scatter(const plan_request& request) {
  return cost_of_phase(blocks::of(proto::REDUCE_SCATTER, request, 0));
}

algorithm_cost cost_of_ring_all_gather(const plan_request& request) {
  return cost_of_phase(blocks::of(proto::ALL_GATHER, request, 0));
}

namespace {

/// The blocks of the ring, and how each is cut.
struct ring_blocks {
  const plan_request& request;
  uint64_t largest = block_of(buffer::output, request.count, request.world_size, 0).count;
  uint64_t chunk = pieces::chunk_of(request, largest, std::max<uint64_t>(max_pieces / request.world_size, 1));

  /// Block `index` modulo N.
  pieces cut(uint64_t index) const {
    const auto block = block_of(buffer::output, request.count, request.world_size,
                                static_cast<uint32_t>(index % request.world_size));
    return {block.offset, block.count, chunk};
  }
};

/// Steps 0 to N-2 of a piece: block rank - step goes on, block rank - step - 1 comes in and is added to.
void reduce_scatter(schedule_builder& b, const ring_blocks& blocks, uint32_t piece, uint32_t next, uint32_t previous) {
  const auto size = b.request.world_size;
  for (uint32_t i = 0; i + 1 < size; ++i) {
    const auto going = blocks.cut(uint64_t{b.request.rank} + size - i);
    const auto coming = blocks.cut(uint64_t{b.request.rank} + size - i - 1);
    b.send(piece + i, next, going.at(i == 0 ? buffer::input : buffer::output, piece));
    b.recv_reduce(piece + i, previous, coming.at(buffer::input, piece), coming.at(buffer::output, piece),
                  i + 2 == size);
  }
}

/// Steps N-1 to 2(N-1)-1 of a piece: whole blocks go on.
void all_gather(schedule_builder& b, const ring_blocks& blocks, uint32_t piece, uint32_t next, uint32_t previous) {
  const auto size = b.request.world_size;
  for (uint32_t i = 0; i + 1 < size; ++i) {
    const auto round = piece + size - 1 + i;
    b.send(round, next, blocks.cut(uint64_t{b.request.rank} + size + 1 - i).at(buffer::output, piece));
    b.recv(round, previous, blocks.cut(uint64_t{b.request.rank} + size - i).at(buffer::output, piece));
  }
}

} // namespace

schedule plan_ring_pipelined_all_reduce(const plan_request& request) {
  schedule_builder b{request};
  const ring_blocks blocks{request};
  const auto size = request.world_size;
  const auto next = (request.rank + 1) % size;
  const auto previous = (request.rank + size - 1) % size;
  const auto pieces_of_a_block = blocks.cut(0).size();
  for (uint32_t piece = 0; piece < pieces_of_a_block; ++piece) {
    reduce_scatter(b, blocks, piece, next, previous);
    all_gather(b, blocks, piece, next, previous);
  }
  return b.take(2 * (size - 1) + pieces_of_a_block - 1);
}

algorithm_cost cost_of_ring_pipelined_all_reduce(const plan_request& request) {
  const ring_blocks blocks{request};
  const uint64_t n = request.world_size;
  const auto rounds = 2 * (n - 1) + blocks.cut(0).size() - 1;
  uint64_t all_pieces = 0;
  for (uint64_t index = 0; index < n; ++index)
    all_pieces += blocks.cut(index).size();
  algorithm_cost cost{rounds, 0, 0, rounds, 2 * (n - 1) * blocks.largest};
  for (uint64_t rank = 0; rank < n; ++rank) { // a rank sends each block twice, but for the two that it sends once
    const auto once = blocks.cut(rank + 1).size() + blocks.cut(rank + 2).size();
    const auto next = static_cast<uint32_t>((rank + 1) % n), second = static_cast<uint32_t>((rank + 2) % n);
    const auto elements_once = block_of(buffer::output, request.count, request.world_size, next).count
                               + block_of(buffer::output, request.count, request.world_size, second).count;
    cost.elements = std::max(cost.elements, 2 * request.count - elements_once);
    cost.messages = std::max(cost.messages, 2 * all_pieces - once);
  }
  return cost;
}

} // namespace ringmaster
