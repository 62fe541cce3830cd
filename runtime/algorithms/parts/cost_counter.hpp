#pragma once

#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <vector>

namespace ringmaster {

/// Adds up the cost of an algorithm from its messages, round by round. For algorithms where a rank has, in one round,
/// at most one peer to send to and one to receive from: several messages to the same peer follow each other and share
/// a latency. No rank then ends a round later than a latency and the largest exchange of that round after the last rank
/// began it, so the sum over the rounds is a bound, and it is the time itself where one rank takes part in the largest
/// exchange of every round.
class cost_counter {
public:
  explicit cost_counter(uint32_t world_size)
    : elements_(world_size), sent_(world_size), received_(world_size), round_(world_size) {}

  /// A message of the round that is open; none if it has no elements.
  void send(uint32_t from, uint32_t to, uint64_t elements) {
    if (elements == 0)
      return;
    elements_[from] += elements;
    round_[from] += elements;
    ++sent_[from];
    ++received_[to];
  }

  void end_round() {
    const auto largest = *std::max_element(round_.begin(), round_.end());
    cost_.serial_elements += largest;
    cost_.latencies += largest != 0 ? 1 : 0;
    ++cost_.rounds;
    std::fill(round_.begin(), round_.end(), 0);
  }

  algorithm_cost take() {
    cost_.elements = *std::max_element(elements_.begin(), elements_.end());
    cost_.messages = std::max(*std::max_element(sent_.begin(), sent_.end()),
                              *std::max_element(received_.begin(), received_.end()));
    return cost_;
  }

private:
  std::vector<uint64_t> elements_, sent_, received_, round_; ///< By rank; the last one of this round only.
  algorithm_cost cost_;
};

} // namespace ringmaster
