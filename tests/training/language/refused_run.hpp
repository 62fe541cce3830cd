#pragma once

#include "messages/errc.hpp"
#include "training/simulated/simulator.hpp"

#include <doctest/doctest.h>

namespace ringmaster::test {

/// What the run of a program says that is wrong.
inline std::string error_of(const training::strategy_function& program, const training::model& m, uint32_t world_size) {
  auto result = training::simulate(program, m, world_size, training::puzzle_costs());
  REQUIRE(!result.engaged());
  return render(result.error());
}

} // namespace ringmaster::test
