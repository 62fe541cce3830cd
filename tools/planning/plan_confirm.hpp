#pragma once

#include "tools/planning/plan_report.hpp"

#include <chrono>
#include <functional>
#include <vector>

namespace ringmaster {

/// What confirming may take in all. The operations are shared out before anything is simulated, so that a question has
/// the same answer each time; the time is a limit for machines on which that takes too long.
struct confirmation_limits {
  uint64_t operations = 30'000'000; ///< As expected; some three seconds on two cores.
  std::chrono::milliseconds time{8000};
};

/// The best plans, simulated as far as the limits allow, on up to four threads, and of the others those whose closed
/// form is faster than the best that was found. Then by time, those that do not fit last; as many as were the best.
///
/// A plan whose whole step is too long is simulated by two shorter steps (`plan_run::steady`). One for which that is
/// too much, too, or for which no time is left, is not simulated, and its `problem` says why: its closed form counts,
/// times what simulated ones take of theirs. `watch` is given the part that is done, by one thread at a time; it stops
/// the rest by returning false.
std::vector<confirmed_plan> confirm_plans(const training::plan_question& asked,
                                          const training::transformer_plans& found,
                                          const std::function<bool(double)>& watch,
                                          const confirmation_limits& limits = {});

} // namespace ringmaster
