#include "runtime/algorithms/rings/rings.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/parts/pieces.hpp"

#include <bit>

namespace ringmaster {

namespace {

/// Blocks that go over in the round with distance 2^k.
uint32_t blocks_sent(uint32_t n, uint32_t k) {
  return std::min(1u << k, n - (1u << k));
}

/// Which of the slots with bit k, in the order of their numbers, slot `j` is.
uint32_t place_in_message(uint32_t j, uint32_t k) {
  return (j >> (k + 1) << k) + (j & ((1u << k) - 1));
}
/// Slots with bit k among the first n.
uint32_t slots_sent(uint32_t n, uint32_t k) {
  return (n >> (k + 1) << k) + (n >> k & 1 ? n & ((1u << k) - 1) : 0);
}

/// One rank's memory of the all-to-all: a message as it goes out, and all that came in.
class slots {
public:
  explicit slots(schedule_builder& plan) : request_(plan.request) {
    packed_ = plan.scratch(widest_message());
    for (uint32_t k = 0; k < doublings(request_.world_size); ++k)
      arrived_.push_back(plan.scratch(message_count(k)));
  }

  uint64_t message_count(uint32_t k) const { return slots_sent(request_.world_size, k) * request_.count; }
  block_range packed(uint32_t k) const { return {buffer::scratch, packed_, message_count(k)}; }
  block_range packed(uint32_t k, uint32_t j) const {
    return {buffer::scratch, packed_ + place_in_message(j, k) * request_.count, request_.count};
  }
  block_range arrived(uint32_t k) const { return {buffer::scratch, arrived_[k], message_count(k)}; }

  /// Where slot `j` is before round `k`: where its last hop brought it, or still in the input.
  block_range at(uint32_t j, uint32_t k) const {
    const auto hops = j & ((1u << k) - 1);
    if (hops == 0)
      return {buffer::input, (request_.rank + j) % request_.world_size * request_.count, request_.count};
    const auto last = static_cast<uint32_t>(std::bit_width(hops)) - 1;
    return {buffer::scratch, arrived_[last] + place_in_message(j, last) * request_.count, request_.count};
  }

private:
  uint64_t widest_message() const {
    uint64_t widest = 0;
    for (uint32_t k = 0; k < doublings(request_.world_size); ++k)
      widest = std::max(widest, message_count(k));
    return widest;
  }

  const plan_request& request_;
  uint64_t packed_ = 0;
  std::vector<uint64_t> arrived_;
};

} // namespace

void gather_all(schedule_builder& plan, uint32_t round, const blocks& cut, block_range own, uint32_t root,
                bool to_root) {
  const auto n = plan.request.world_size;
  const auto place = (plan.request.rank + n - root) % n;
  for (uint32_t k = 0; k < doublings(n); ++k) {
    const auto distance = 1u << k, length = blocks_sent(n, k);
    const auto to = (place + n - distance) % n, from = (place + distance) % n;
    if (to_root || to != 0) {
      if (k == 0)
        plan.send(round, (to + root) % n, own);
      else
        for (const auto& part : wrapped_blocks(cut, buffer::output, place, length))
          plan.send(round + k, (to + root) % n, part);
    }
    if (to_root || place != 0)
      for (const auto& part : wrapped_blocks(cut, buffer::output, from, length))
        plan.recv(round + k, (from + root) % n, part);
  }
}

void count_all_gather(cost_counter& counter, const blocks& cut, uint32_t root, bool to_root) {
  const auto n = cut.size();
  for (uint32_t k = 0; k < doublings(n); ++k) {
    for (uint32_t place = 0; place < n; ++place) {
      const auto to = (place + n - (1u << k)) % n;
      if (to_root || to != 0)
        for (const auto& part : wrapped_blocks(cut, buffer::output, place, blocks_sent(n, k)))
          counter.send((place + root) % n, (to + root) % n, part.count);
    }
    counter.end_round();
  }
}

schedule plan_bruck_all_gather(const plan_request& request) {
  const auto cut = blocks::of(proto::ALL_GATHER, request, request.rank);
  const block_range own{buffer::input, 0, cut.count(request.rank)};
  schedule_builder plan{request};
  plan.copy(0, own, cut.at(buffer::output, request.rank));
  gather_all(plan, 0, cut, own, 0, true);
  return plan.take(doublings(request.world_size));
}

algorithm_cost cost_of_bruck_all_gather(const plan_request& request) {
  cost_counter counter{request.world_size};
  count_all_gather(counter, blocks::of(proto::ALL_GATHER, request, 0), 0, true);
  return counter.take();
}

caf::error check_bruck_all_to_all(const plan_request& request) {
  if (request.counts.empty())
    return caf::none;
  return invalid("bruck packs all_to_all's blocks by number and wants them all of one size: with counts by rank, "
                 "take pairwise");
}

schedule plan_bruck_all_to_all(const plan_request& request) {
  const auto n = request.world_size, rank = request.rank, rounds = doublings(n);
  schedule_builder plan{request};
  const slots all{plan};
  for (uint32_t k = 0; k < rounds; ++k) {
    const auto distance = 1u << k;
    plan.recv(k, (rank + n - distance) % n, all.arrived(k));
    for (uint32_t j = distance; j < n; j = (j + 1) | distance) { // all that have bit k
      plan.copy(k, all.at(j, k), all.packed(k, j));
      if (j != distance)
        plan.then();
    }
    plan.send(k, (rank + distance) % n, all.packed(k));
    plan.then();
  }
  for (uint32_t j = 0; j < n; ++j)
    plan.copy(rounds, all.at(j, rounds), {buffer::output, (rank + n - j) % n * request.count, request.count});
  return plan.take(rounds + 1);
}

algorithm_cost cost_of_bruck_all_to_all(const plan_request& request) {
  const uint64_t rounds = doublings(request.world_size);
  uint64_t elements = 0;
  for (uint32_t k = 0; k < rounds; ++k)
    elements += slots_sent(request.world_size, k) * request.count;
  return {rounds + 1, elements, rounds, rounds, elements};
}

} // namespace ringmaster
