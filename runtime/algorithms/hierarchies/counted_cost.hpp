#pragma once

#include "runtime/schedule/collective.hpp"

namespace ringmaster {

/// What the schedules of all ranks take, by counting their messages: for algorithms whose cost has no short formula.
/// Of a round in which ranks have several peers, a message has ended when all that was before it in its two ports has
/// gone through, so the largest such sum over the messages is a bound of the round's.
algorithm_cost counted_cost(const plan_request& request, schedule (*plan)(const plan_request&));

} // namespace ringmaster
