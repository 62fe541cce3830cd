#include "runtime/algorithms/rings/ring_pipelined.hpp"

#include "runtime/algorithms/parts/pieces.hpp"

namespace ringmaster {

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
