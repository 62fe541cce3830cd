#include "runtime/algorithms/rings/dissemination.hpp"

#include "runtime/schedule/collective.hpp"

#include <bit>

namespace ringmaster {

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
