#include "runtime/algorithms/rings/rings.hpp"

#include "runtime/algorithms/parts/pieces.hpp"

namespace ringmaster {

namespace {

pieces cut_of(const plan_request& request) {
  return {0, request.count, pieces::chunk_of(request, request.count)};
}

/// One rank's place in the row.
struct chain {
  schedule_builder b;
  uint32_t root;
  pieces cut = cut_of(b.request);

  uint32_t size() const { return b.request.world_size; }
  uint32_t place() const { return (b.request.rank + (size() - root)) % size(); }
  bool is_first() const { return place() == 0; }
  bool is_last() const { return place() + 1 == size(); }
  uint32_t next() const { return b.request.rank + 1 == size() ? 0 : b.request.rank + 1; }
  uint32_t previous() const { return b.request.rank == 0 ? size() - 1 : b.request.rank - 1; }
  uint32_t rounds() const { return size() - 2 + cut.size(); }

  /// Away from the root, whose pieces are in `source`.
  void broadcast(uint32_t first_round, buffer source) {
    for (uint32_t index = 0; index < cut.size(); ++index) {
      if (!is_first())
        b.recv(first_round + place() - 1 + index, previous(), cut.at(buffer::output, index));
      if (!is_last())
        b.send(first_round + place() + index, next(), cut.at(is_first() ? source : buffer::output, index));
    }
  }

  /// Towards the root, from round 0.
  void reduce(const piece_sums& sums) {
    const auto round_of_send = size() - 1 - place();
    for (uint32_t index = 0; index < cut.size(); ++index) {
      const auto input = cut.at(buffer::input, index);
      const auto sum = sums.at(cut, index);
      if (!is_last())
        b.recv_reduce(round_of_send - 1 + index, next(), input, sum, is_first());
      if (!is_first())
        b.send(round_of_send + index, previous(), is_last() ? input : sum);
    }
  }
};

algorithm_cost one_way(const plan_request& request) {
  const auto cut = cut_of(request);
  const auto rounds = uint64_t{request.world_size} - 2 + cut.size();
  return {rounds, request.count, cut.size(), rounds, rounds * cut.chunk()};
}

} // namespace

schedule plan_chain_broadcast(const plan_request& request) {
  chain c{schedule_builder{request}, request.root};
  c.broadcast(0, buffer::input);
  if (c.is_first())
    c.b.copy(0, {buffer::input, 0, request.count}, {buffer::output, 0, request.count});
  return c.b.take(c.rounds());
}

algorithm_cost cost_of_chain_broadcast(const plan_request& request) {
  return one_way(request);
}

schedule plan_chain_reduce(const plan_request& request) {
  chain c{schedule_builder{request}, request.root};
  const auto is_inner = !c.is_first() && !c.is_last();
  c.reduce(is_inner ? piece_sums::in_scratch(c.b, c.cut) : piece_sums::in_output());
  return c.b.take(c.rounds());
}

algorithm_cost cost_of_chain_reduce(const plan_request& request) {
  return one_way(request);
}

schedule plan_chain_all_reduce(const plan_request& request) {
  chain c{schedule_builder{request}, 0};
  c.reduce(piece_sums::in_output());
  c.broadcast(c.rounds(), buffer::output);
  return c.b.take(2 * c.rounds());
}

algorithm_cost cost_of_chain_all_reduce(const plan_request& request) {
  const auto once = one_way(request);
  const uint64_t ways = request.world_size == 2 ? 1 : 2; // of two ranks, each sends in one of the two directions only
  return {2 * once.rounds, ways * once.elements, ways * once.messages, 2 * once.latencies, 2 * once.serial_elements};
}

} // namespace ringmaster
