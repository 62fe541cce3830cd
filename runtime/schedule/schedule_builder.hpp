#pragma once

#include "runtime/schedule/schedule.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster {

/// What algorithms write their steps with. Blocks without elements are left out; their rounds stay.
class schedule_builder {
public:
  explicit schedule_builder(const plan_request& asked) : request(asked) {}

  void send(uint32_t round, uint32_t peer, block_range source) {
    add({.what = action::send, .round = round, .peer = peer, .source = source}, source.count);
  }

  void recv(uint32_t round, uint32_t peer, block_range destination) {
    add({.what = action::recv, .round = round, .peer = peer, .destination = destination}, destination.count);
  }

  /// `source`: this rank's own part of the reduction.
  void recv_reduce(uint32_t round, uint32_t peer, block_range source, block_range destination, bool finish = false) {
    add({.what = action::recv_reduce,
         .round = round,
         .peer = peer,
         .source = source,
         .destination = destination,
         .finish = finish},
        destination.count);
  }

  void copy(uint32_t round, block_range source, block_range destination, bool finish = false) {
    add({.what = action::copy,
         .round = round,
         .peer = request.rank,
         .source = source,
         .destination = destination,
         .finish = finish},
        destination.count);
  }

  void reduce(uint32_t round, block_range source, block_range destination, bool finish = false) {
    add({.what = action::reduce,
         .round = round,
         .peer = request.rank,
         .source = source,
         .destination = destination,
         .finish = finish},
        destination.count);
  }

  /// The step added last starts when the one before it has ended. Only after a step that was not empty.
  void then() { result_.steps.back().then = true; }

  /// `elements` more of scratch; returns where they start.
  uint64_t scratch(uint64_t elements) { return std::exchange(result_.scratch_count, result_.scratch_count + elements); }

  schedule take(uint32_t rounds) {
    result_.rounds = rounds;
    std::stable_sort(result_.steps.begin(), result_.steps.end(), [](auto& a, auto& b) { return a.round < b.round; });
    return std::move(result_);
  }

  const plan_request& request;

private:
  void add(step x, uint64_t elements) {
    if (elements != 0)
      result_.steps.push_back(x);
  }

  schedule result_;
};

} // namespace ringmaster
