#pragma once

#include "messages/errc.hpp"
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include <doctest/doctest.h>

namespace ringmaster::test {

/// A step of a strategy that accepts the model, and leaves nothing behind.
inline training::training_outcome outcome_of(std::string_view name, const training::model& m, uint32_t world_size,
                                             const training::cost_model& costs, bool with_events = false) {
  auto* which = training::strategy_of(name);
  REQUIRE(which != nullptr);
  auto refused = which->check(m, world_size);
  REQUIRE_MESSAGE(!refused, render(refused));
  auto result = training::simulate([&](training::rank& self) { return which->run(self, m); }, m, world_size, costs,
                                   with_events);
  REQUIRE_MESSAGE(result.engaged(), render(result.error()));
  CHECK(result->memory_left == 0);
  return *result;
}

inline uint64_t peak_memory_of(const training::training_outcome& x) {
  return x.ranks[x.peak_rank].peak_memory;
}

} // namespace ringmaster::test
