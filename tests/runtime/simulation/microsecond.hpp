#pragma once

#include "runtime/simulation/network.hpp"

namespace ringmaster::test {

constexpr picoseconds us = 1'000'000;

} // namespace ringmaster::test
