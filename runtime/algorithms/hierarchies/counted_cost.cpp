#include "runtime/algorithms/hierarchies/counted_cost.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace ringmaster {

namespace {

/// Elements of a round, by sender and receiver.
using round_traffic = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;

uint64_t serial_elements_of(const round_traffic& traffic, uint32_t world_size) {
  std::vector<uint64_t> out(world_size), in(world_size);
  for (const auto& [ends, elements] : traffic) {
    out[ends.first] += elements;
    in[ends.second] += elements;
  }
  uint64_t longest = 0;
  for (const auto& [ends, elements] : traffic)
    longest = std::max(longest, out[ends.first] + in[ends.second] - elements);
  return longest;
}

} // namespace

algorithm_cost counted_cost(const plan_request& request, schedule (*plan)(const plan_request&)) {
  algorithm_cost cost;
  std::vector<round_traffic> rounds;
  for (uint32_t rank = 0; rank < request.world_size; ++rank) {
    auto of_rank = request;
    of_rank.rank = rank;
    const auto planned = plan(of_rank);
    rounds.resize(std::max<size_t>(rounds.size(), planned.rounds));
    uint64_t elements = 0, sent = 0, received = 0;
    for (const auto& x : planned.steps) {
      if (x.what == action::send) {
        rounds[x.round][{rank, x.peer}] += x.source.count;
        elements += x.source.count;
        ++sent;
      } else if (x.what == action::recv || x.what == action::recv_reduce) {
        ++received;
      }
    }
    cost.elements = std::max(cost.elements, elements);
    cost.messages = std::max({cost.messages, sent, received});
  }
  cost.rounds = rounds.size();
  for (const auto& traffic : rounds) {
    cost.latencies += traffic.empty() ? 0 : 1;
    cost.serial_elements += serial_elements_of(traffic, request.world_size);
  }
  return cost;
}

} // namespace ringmaster
